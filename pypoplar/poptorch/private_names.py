"""The private names of PyTorch that `pypoplar.poptorch` uses, each with what for: what another version of PyTorch may do without.

`tests/poptorch/test_private_names.py` compares them with the PyTorch that is installed, and with every module here.
"""

NAMES = {
    "torch.utils._pytree.register_pytree_node": "classes with a parser of arguments are trees to PyTorch, too",
    "torch.utils._pytree._deregister_pytree_node": "and no longer",
    "torch.utils._pytree.SequenceKey": "the places of a parser's tensors",
    "torch.utils._pytree.tree_flatten": "arguments and results as lists of tensors",
    "torch.utils._pytree.tree_unflatten": "and back",
    "torch.utils._pytree.tree_leaves": "the tensors of arguments and results",
    "torch.utils._pytree.tree_map": "arguments with other tensors",
    "torch.utils._python_dispatch._disable_current_modes": "functions of the host run as PyTorch does, within a capture",
    "torch.export._trace": "it prints graphs that it cannot go on with, which is kept from users",
    "torch._export": "a logger by this name, kept quiet while a model is exported",
    "torch._subclasses.fake_tensor.DataDependentOutputException": "why a capture ended, and a logger by the module's name",
    "torch._subclasses.fake_tensor.DynamicOutputShapeException": "the same",
    "torch._subclasses.fake_tensor.FakeTensor": "what stands for tensors without elements while a module is captured",
    "torch._subclasses.fake_tensor.FakeTensorMode": "in which mode it does",
    "torch._subclasses.fake_tensor.FakeTensorDeviceMismatchError": "that a tensor on meta has nothing that stands for it",
    "torch._guards.TracingContext": "by which a capture finds the mode of what stands for tensors",
    "torch._guards.tracing": "the same",
    "torch._subclasses.fake_impls.op_implementations_dict": "whether the CTC loss has shapes already",
    "torch._subclasses.fake_impls.register_op_impl": "the shapes of the CTC loss, which PyTorch has not",
    "torch._ops.OpOverload": "whether a node of a graph is an operation",
    "torch._ops.OpOverload._schema": "the name of an operation, what it returns and what it changes",
    "torch._ops.OpOverload._opname": "the name of an operation without its package",
    "torch.fx.Node._rename": "outputs keep the names by which the signature knows them",
    "torch.fx.proxy.TracerBase._filter_traceback_frames": "a node's lines are the user's",
    "torch._VF._pack_padded_sequence": "sequences of different lengths are refused while a model is exported",
    "torch.functional._return_output": "where `unique` is refused, by the name of the function that is called",
    "torch.nn.modules.batchnorm._BatchNorm.forward": "batch norms while a model is exported",
    "torch.nn.modules.batchnorm._BatchNorm._check_input_dim": "a batch norm refuses what PyTorch's does",
    "torch.nn.modules.instancenorm._InstanceNorm._apply_instance_norm": "instance norms while a model is exported",
    "torch.nn.modules.transformer._detect_is_causal_mask": "it looks at data, which a capture has not",
    "torch.nn.Module._parameters": "whether what a module is given while it runs is its own",
    "torch.nn.Module._buffers": "the same",
    "torch.nn.Module._modules": "the same; and the layers that are printed",
    "torch.nn.Module._get_name": "what a layer is printed as",
    "torch.nn.Module._forward_pre_hooks": "blocks begin with a hook",
    "torch.nn.Module._backward_hooks": "hooks of gradients are refused",
    "torch.nn.Module._backward_pre_hooks": "the same",
    "torch.Tensor._backward_hooks": "the same of parameters",
    "torch.Tensor._post_accumulate_grad_hooks": "the same",
    "torch.distributions.Distribution._validate_args": "distributions are not validated while a model is exported",
    "torch.UntypedStorage._cdata": "which values of a graph are views of one memory",
    "torch.utils.data.DataLoader._iterator": "processes that load are let go when a loader ends",
    "torch.utils.data.dataloader._MultiProcessingDataLoaderIter._shutdown_workers": "and ended",
}
"""By the place where PyTorch has them."""

OPERATIONS = (
    *("_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d", "_adaptive_avg_pool3d_backward"),
    *("_assert_tensor_metadata", "_ctc_loss", "_ctc_loss_backward", "_index_put_impl", "_local_scalar_dense"),
    *("_log_softmax", "_log_softmax_backward_data", "_native_batch_norm_legit", "_native_batch_norm_legit_functional"),
    *("_native_batch_norm_legit_no_training", "_prelu_kernel", "_prelu_kernel_backward", "_safe_softmax", "_softmax"),
    *("_softmax_backward_data", "_to_copy", "_unique2", "_unsafe_index", "_unsafe_index_put", "_unsafe_view"),
    *("_upsample_bicubic2d_aa", "_upsample_bicubic2d_aa_backward", "_upsample_bilinear2d_aa", "_upsample_bilinear2d_aa_backward"),
    *("_upsample_nearest_exact1d", "_upsample_nearest_exact1d_backward", "_upsample_nearest_exact2d"),
    *("_upsample_nearest_exact2d_backward", "_upsample_nearest_exact3d", "_upsample_nearest_exact3d_backward", "_weight_norm"),
)
"""Operations of `torch.ops.aten`, which stand in exported graphs, and are lowered or refused by their names."""
