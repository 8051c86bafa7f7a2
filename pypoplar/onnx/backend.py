"""ONNX's interface of backends: ``onnx.backend.test.BackendTest(pypoplar.onnx.backend, __name__)``, and programs that take one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import ModelProto, NodeProto, helper
from onnx.backend import base

from pypoplar.errors import InvalidOption, PoplarError, PoplarTypeError
from pypoplar.onnx.function_bodies import schema_of
from pypoplar.onnx.model import Array, Model, load
from pypoplar.onnx.operator_table import plain_domain

DEVICES = ("CPU", "IPU")


class PreparedModel(base.BackendRep):
    """A model that is ready to run, made by `prepare` or `Backend.prepare`."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Array, ...]:
        """Run the model.

        Parameters
        ----------
        inputs:
            Arrays in the order of the model's inputs, or by name; one array where there is one input.
        kwargs:
            Nothing: `PoplarTypeError` for any.

        Returns
        -------
        tuple
            The outputs in the model's order.
        """
        if kwargs:
            raise PoplarTypeError(f"run takes inputs alone, got {', '.join(kwargs)}")
        alone = not isinstance(inputs, dict | list | tuple)
        return tuple(self.model([inputs] if alone else inputs).values())

    def cycleCount(self) -> int:
        """Tile cycles of the last run; 0 where nothing runs on the device."""
        return self.model.cycleCount()


class Backend(base.Backend):
    """Models of ONNX on the simulated IPU, which runs on the CPU: devices are "CPU" and "IPU"."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models run on a device of this name.

        Parameters
        ----------
        device:
            A name such as "CPU" or "IPU:0".

        Returns
        -------
        bool
            True for the CPU and the IPU, which are both simulated.
        """
        return str(device).partition(":")[0].upper() in DEVICES

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether all of a model's operators and types are there; shapes are not tried.

        Parameters
        ----------
        model:
            The model.
        device:
            As of `supports_device`.
        kwargs:
            As of `pypoplar.onnx.load`.

        Returns
        -------
        bool
            False also for a device that there is not.
        """
        try:
            load(model, **kwargs)
        except PoplarError:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """Make a model ready; it is compiled for the inputs of its first run.

        Parameters
        ----------
        model:
            The model.
        device:
            "CPU" or "IPU".
        kwargs:
            As of `pypoplar.onnx.load`.

        Returns
        -------
        PreparedModel
            With `run` and `cycleCount`.

        Raises
        ------
        InvalidOption
            For another device.
        """
        _check_device(device)
        return PreparedModel(load(model, **kwargs))

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Array, ...]:
        """Run a model once: `prepare` and `run` of what it gives.

        Parameters
        ----------
        model:
            The model.
        inputs:
            Arrays, as `PreparedModel.run` takes them.
        device:
            "CPU" or "IPU".
        kwargs:
            As of `pypoplar.onnx.load`.

        Returns
        -------
        tuple
            The outputs in the model's order.
        """
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Sequence[Any] | None = None, **kwargs: Any
    ) -> tuple[Array, ...]:
        """Run one operator.

        Parameters
        ----------
        node:
            The node.
        inputs:
            Arrays for its inputs, without those that are left out.
        device:
            "CPU" or "IPU".
        outputs_info:
            Types and shapes of the outputs, which come from the operator here.
        kwargs:
            `opset_version`, the opset of the node's domain: the newest if it is not given.

        Returns
        -------
        tuple
            The outputs in the node's order.
        """
        _check_device(device)
        domain = plain_domain(node.domain)
        newest = onnx.defs.onnx_opset_version() if not domain else 1
        opset = int(kwargs.pop("opset_version", newest))
        if kwargs:
            raise PoplarTypeError(f"run_node takes opset_version, got {', '.join(kwargs)}")
        if schema_of(domain, node.op_type, opset) is None and not domain:
            raise PoplarTypeError(f"opset {opset} of ai.onnx has no operator {node.op_type}")
        named = [name for name in node.input if name]
        arrays = list(inputs.values()) if isinstance(inputs, dict) else list(inputs)
        if len(arrays) != len(named):
            raise PoplarTypeError(f"{node.op_type} takes {len(named)} inputs here, got {len(arrays)}")
        values = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(named, arrays, strict=True)
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], f"{node.op_type} node", values, results)
        imports = [helper.make_opsetid(domain, opset)]
        model = helper.make_model(graph, opset_imports=imports)
        return cls.run_model(model, arrays, device)


def _check_device(device: str) -> None:
    if not Backend.supports_device(device):
        raise InvalidOption(f"a device is one of {', '.join(DEVICES)}, got {device!r}")


supports_device = Backend.supports_device
is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
