"""Where the windows of convolutions and pools lie, as ONNX's attributes say it."""

from __future__ import annotations

from attrs import frozen

from pypoplar.onnx.node_call import NodeCall


@frozen
class FieldWindows:
    """FieldWindows along each axis of a field, and how it is padded for them."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[int]
    after: list[int]
    sizes: list[int]  # of what comes out
    rest: list[int]  # what a last window that reaches over the padding lacks

    @classmethod
    def of(cls, op: NodeCall, field: list[int], kernel: list[int]) -> FieldWindows:
        """The windows that a node's attributes say."""
        rank = len(field)
        check_kernel(op, kernel)
        strides = list(op.attribute("strides") or [1] * rank)
        dilations = list(op.attribute("dilations") or [1] * rank)
        pads = list(op.attribute("pads") or [0] * 2 * rank)
        kind = op.attribute("auto_pad", "NOTSET")
        if not len(strides) == len(dilations) == rank == len(kernel) or len(pads) != 2 * rank:
            raise op.error(
                f"the field has {rank} dimensions; kernel {kernel}, strides {strides}, dilations {dilations}, pads {pads}"
            )
        spans = [(one - 1) * dilation + 1 for one, dilation in zip(kernel, dilations, strict=True)]
        before, after = pads[:rank], pads[rank:]
        if kind == "VALID":
            before, after = [0] * rank, [0] * rank
        if kind in ("SAME_UPPER", "SAME_LOWER"):
            total = [
                max((-(-size // stride) - 1) * stride + span - size, 0)
                for size, stride, span in zip(field, strides, spans, strict=True)
            ]
            less, more = [one // 2 for one in total], [one - one // 2 for one in total]
            before, after = (less, more) if kind == "SAME_UPPER" else (more, less)
        sizes, rest = [], []
        for axis in range(rank):
            room = field[axis] + before[axis] + after[axis] - spans[axis]
            if room < 0:
                raise op.error(f"the window {kernel} is larger than the padded field {field} at axis {axis + 2}")
            steps = room // strides[axis]
            over = 0
            if op.attribute("ceil_mode", 0) and room % strides[axis]:
                begins = (steps + 1) * strides[axis]
                if begins < field[axis] + before[axis]:  # a window begins within the field or the padding before
                    over, steps = begins - room, steps + 1
            sizes.append(steps + 1)
            rest.append(over)
        return cls(kernel, strides, dilations, before, after, sizes, rest)

    def flat(self) -> list[int]:
        """The padding as PyTorch's `pad` takes it, with what a last window lacks."""
        return [
            one for axis in reversed(range(len(self.kernel))) for one in (self.before[axis], self.after[axis] + self.rest[axis])
        ]

    @property
    def symmetric(self) -> bool:
        """Whether PyTorch's pools take the padding as it is."""
        halves = all(2 * one <= size for one, size in zip(self.before, self.kernel, strict=True))
        return self.before == self.after and not any(self.rest) and halves

    @property
    def dense(self) -> bool:
        """Whether windows have no gaps."""
        return all(one == 1 for one in self.dilations)


def check_kernel(op: NodeCall, kernel: list[int]) -> None:
    """An error where the attribute `kernel_shape` is given, and is not that of the weights."""
    given = op.attribute("kernel_shape")
    if given is not None and list(given) != kernel:
        raise op.error(f"kernel_shape is {list(given)}, and the weights have {kernel}")
