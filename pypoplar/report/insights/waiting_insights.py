"""Findings of the time in which tiles do not compute: exchange, the host, syncs."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.number_ranges import counted
from pypoplar.report.execution import Step, step_number
from pypoplar.report.insights.insight import NOTED, Insight, shown, weigh
from pypoplar.report.insights.little_read import little_read
from pypoplar.report.ipu_links import BetweenIpus, between_ipus
from pypoplar.report.report import Report
from pypoplar.report.slowest_tile import busiest_tile


def biggest_exchange(report: Report) -> Insight | None:
    """The exchange that takes the most cycles, also one that rearranges a stream, and the tile that limits it."""
    execution = report.execution
    steps = [(place, step) for place, step in enumerate(execution.steps) if exchange_cycles(step)] if execution is not None else []
    if execution is None or not steps:
        return None
    place, most = max(steps, key=lambda pair: exchange_cycles(pair[1]))
    total = execution.stepCycles
    share = exchange_cycles(most) / total
    streamed = most.type == "StreamCopy"
    what = f"Rearranging the stream {shown(most.name)} between its order and the tensor's tiles" if streamed else shown(most.name)
    equals = sum(step.name == most.name for _, step in steps)
    number = step_number(most, place)
    what += f" (step {number:,}, one of {equals:,} exchanges of this name)" if equals > 1 else ""
    text = f"{what} takes {exchange_cycles(most):,} cycles, {share:.1%} of the total,"
    text += f" and {most.sync_cycles:,} more for its syncs," if most.sync_cycles else ""
    text += " in"
    sent, received = int(most.bytesSentByTile.sum()), int(most.bytesReceivedByTile.sum())
    text += f" {counted(most.executions, 'execution')}, and {_moved(sent, received)}."
    text += f" All exchanges together take {sum(exchange_cycles(step) for _, step in steps) / total:.1%}."
    sends, limiting = _limiting(most, between_ipus(report).get(number))
    text += limiting
    little, pieces = little_read(execution, most), PieceTime.of(most)
    text += pieces.told() if pieces is not None else ""
    text += little.told() if little is not None else ""
    if little is not None:
        share = share * (1 - little.read / little.elements)
        advice = (
            f"Connect only the elements of {shown(little.field)} that are read: `concat` of slices, where indices are known as"
            " the graph is built, else gather them first (`popops.multiSlice`), or let vertices work where the data is and send"
            " their results."
        )
    elif streamed:
        advice = "Map the tensor in the stream's order, one contiguous piece on each tile: then nothing is rearranged."
    elif pieces is not None:
        share = pieces.saved / total
        advice = (
            "Let what goes from one tile to another be one piece: connect contiguous regions, lay out what a tile needs as it lies"
            " where it comes from (or copy it together there before), and gather by fewer tiles that hand on what they hold."
        )
        advice += (
            " Several numbers for each receiver go in one piece, too: pack them into one tensor."
            if pieces.size <= WORD * pieces.pieces
            else ""
        )
    elif not most.exchange_cycles + most.global_exchange_cycles:
        advice = "Nothing goes between tiles: where vertices work in place, or read and write where the data is, no copy is needed."
    elif sends:
        advice = "Map data to the tiles that use it; where one tile sends much more than the others, spread what they read of it."
    else:
        advice = "Map data to the tiles that use it; where one tile receives much more than the others, spread what it gathers."
    title = f"Biggest exchange: {shown(most.name)}" + (f", step {number:,}" if equals > 1 else "")
    link = f"exchange?step={number}" if sent or received else "trace"
    return Insight("biggest_exchange", weigh(share), title, text, advice, link, share)


def exchange_cycles(step: Step) -> int:
    """Cycles within the IPUs, on their tiles and between them."""
    return step.exchange_cycles + step.copy_cycles + step.global_exchange_cycles


def _limiting(step: Step, links: BetweenIpus | None) -> tuple[bool, str]:
    """Whether the tile that an exchange waits for sends more than it receives, and the sentences about it."""
    tile = busiest_tile(step)
    pace = "at the pace of the slowest link or tile" if links is None else links.told()
    between = f" {step.global_exchange_cycles:,} of its cycles go between IPUs, {pace}."
    text = f" {step.copy_cycles:,} of its cycles are copies on the tiles." if step.copy_cycles and step.exchange_cycles else ""
    text += between if step.global_exchange_cycles else ""
    if tile is None or step.global_exchange_cycles > step.exchange_cycles + step.copy_cycles:
        return links is not None and links.sent > links.received, text
    return tile.sent > tile.received, f"{text} The limit is tile {tile.told()}."


PORT_BYTES = 4  # that a port moves in a cycle, each way
BUS_BYTES = 8  # that come in a cycle where two tiles that share a bus receive the same
PIECE_CYCLES = 3  # that a port takes for a piece at least, `ExchangePrices`
WORD = 4  # bytes


@frozen
class PieceTime:
    """The busiest port of an exchange that takes as long as its pieces, and not as its bytes: of all executions together."""

    pieces: int
    size: int  # bytes of the direction with more
    cycles: int

    @staticmethod
    def of(step: Step) -> PieceTime | None:
        """That of a step; None where its bytes, its copies or the links between IPUs decide, or pieces are not known."""
        tile = busiest_tile(step)
        if tile is None or not tile.pieces or max(step.copy_cycles, step.global_exchange_cycles) > step.exchange_cycles:
            return None
        port = PieceTime(tile.pieces, max(tile.sent, tile.received), tile.cycles)
        return port if tile.pieces * PIECE_CYCLES >= tile.cycles and port.saved > 0 else None

    @property
    def in_one(self) -> int:
        """Cycles of the bytes in one piece, at least."""
        alone = -(-self.size // PORT_BYTES)
        return alone if alone < self.cycles else -(-self.size // BUS_BYTES)

    @property
    def saved(self) -> int:
        """Cycles that it could save at most without any further pieces."""
        return self.cycles - self.in_one

    def told(self) -> str:
        """How long its pieces take, and its bytes."""
        together = f"would take {self.in_one:,}" + ("" if PORT_BYTES * self.in_one >= self.size else " or more")
        return (
            f" Its time is that of its pieces: {counted(self.pieces, 'piece')} of {self.size / self.pieces:,.0f} B in the mean, at"
            f" {PIECE_CYCLES} cycles each; its bytes in one piece {together}."
        )


def _moved(sent: int, received: int) -> str:
    """What an exchange moves: on tiles, or between them, where what is sent once may reach several."""
    if not sent and not received:
        return "moves bytes on their tiles only, into another order"
    return f"moves {sent:,} B" + (f", which arrive as {received:,} B on several tiles at once" if received > sent else "")


def host_bound(report: Report) -> Insight | None:
    """Time spent on the host's streams."""
    execution = report.execution
    cycles = sum(step.host_exchange_cycles for step in execution.steps) if execution is not None else 0
    if execution is None or not cycles:
        return None
    share = cycles / execution.stepCycles
    sent = sum(step.host_bytes for step in execution.steps)
    text = f"Exchange with the host takes {cycles:,} cycles, {share:.1%} of the total, for {sent:,} B."
    syncs = _host_syncs(report)
    if syncs is None:
        advice = f"{FEWER_COPIES}, {KEEP}"
    else:
        text += f" {counted(syncs.times, 'transfer takes', 'transfers take')} {syncs.cycles:,} of them for syncs,"
        text += f" {syncs.cycles / execution.stepCycles:.1%} of the total;"
        text += f" the rest, {1 - syncs.cycles / cycles:.1%} of them, for bytes."
        advice = f"{FEWER_BYTES}. K{KEEP[1:]}" if 2 * syncs.cycles <= cycles else f"{FEWER_COPIES}, {KEEP}"
    longest = max(execution.steps, key=lambda step: step.host_exchange_cycles)
    if longest.host_limit:
        text += f" The longest, {longest.name!r}, is limited by {longest.host_limit}."
    title = "Bound by the host" if share >= NOTED else "Exchange with the host"
    return Insight("host_bound", weigh(share), title, text, advice, "trace", share)


FEWER_COPIES = "Copy more in fewer stream copies: each transfer takes a sync with the host"
FEWER_BYTES = (
    "Send fewer bytes: in smaller types (UNSIGNED_CHAR for pixels and classes, HALF), which `popops.cast` widens on the device, and"
    " nothing twice"
)
KEEP = "keep data on the device over several runs, or move loops from the host into a Repeat."


@frozen
class HostSyncs:
    """The transfers from and to the host, and the cycles that they take whatever they transfer."""

    times: int
    cycles: int


def _host_syncs(report: Report) -> HostSyncs | None:
    """Those of all steps together; None where the link is not known. What a step sends together has one sync."""
    link = report.compilation.target.host_link
    if link is None:
        return None
    steps = [step for step in report.execution.steps if step.host_exchange_cycles]
    cycles = sum(min(step.host_exchange_cycles, round(step.executions * link.sync_cycles)) for step in steps)
    return HostSyncs(sum(step.executions for step in steps), cycles)


def sync_bound(report: Report) -> Insight | None:
    """Time spent on the syncs themselves, without the waiting for slower tiles."""
    execution = report.execution
    cycles = sum(step.sync_cycles for step in execution.steps) if execution is not None else 0
    if execution is None or not cycles:
        return None
    share = cycles / execution.stepCycles
    times = sum(step.executions for step in execution.steps if step.sync_cycles)
    text = f"{counted(times, 'step synchronises', 'steps synchronise')}, for {cycles:,} cycles: {share:.1%} of the total,"
    text += f" {cycles / max(1, times):,.0f} each time."
    advice = "Put independent vertices into one compute set, and independent copies into one Copy: fewer, larger supersteps."
    title = "Bound by synchronisation" if share >= NOTED else "Synchronisation"
    return Insight("sync_bound", weigh(share), title, text, advice, "trace", share)
