"""A Perfetto trace as tracks, slices, instants and counters, and the packets that they are written in.

The schema is that of the package perfetto: ``TrackDescriptor`` and ``TrackEvent`` in ``TracePacket``.  All packets are on one
sequence, in order of time.  At one time slices end before others on their track begin; names of arguments and categories are
interned in the first packet.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.errors import SpecificationError, missing_package
from clustermodel.ticks import TICKS_PER_SECOND

_NS_PER_TICK: Final = 10**9 // TICKS_PER_SECOND
_LAST_NS: Final = 2**63 - 1
_SEQUENCE: Final = 1
_DESCRIPTOR, _END, _INSTANT, _COUNTER, _BEGIN = range(5)

Argument = int | float | str


class Event(NamedTuple):
    """A slice or an instant on a track."""

    track: int
    """Its uuid."""
    begin: int
    """Ticks."""
    end: int
    """Ticks; of an instant its begin."""
    name: str
    category: str
    arguments: tuple[Argument, ...]
    """In the order of their names."""
    names: tuple[str, ...]
    """Names of the arguments."""
    flow: int = 0
    """Connects this slice with the earlier and later ones of the same number; 0: with none."""
    last_of_flow: bool = False


class Packets:
    """The contents of a trace; :meth:`write` orders and encodes them.

    Raises:
        SpecificationError: the package perfetto is missing.
    """

    def __init__(self) -> None:
        self._schema = _schema()
        self._uuids = count(1)
        self._processes = count(1)
        self._flows = count(1)
        self._descriptors: list[Any] = []
        self._slices: list[Event] = []
        self._instants: list[Event] = []
        self._samples: list[tuple[int, IntArray, IntArray | FloatArray]] = []

    def process(self, name: str, description: str) -> int:
        """Add a process, whose tracks stand together, and return its uuid."""
        descriptor = self._track(name, 0, 0)
        descriptor.ClearField("name")
        descriptor.process.pid = next(self._processes)
        descriptor.process.process_name = name
        descriptor.description = description
        descriptor.child_ordering = descriptor.EXPLICIT
        return int(descriptor.uuid)

    def track(self, parent: int, name: str, rank: int, *, description: str = "") -> int:
        """Add a track of slices, or a heading of the tracks below it, and return its uuid.

        Args:
            parent: uuid of the process or track under which it stands.
            name: shown beside it.
            rank: its place among the tracks of the same parent, from 0.
            description: shown where the track is selected.
        """
        descriptor = self._track(name, parent, rank)
        descriptor.child_ordering = descriptor.EXPLICIT
        if description:
            descriptor.description = description
        return int(descriptor.uuid)

    def counter(self, parent: int, name: str, rank: int, unit: str, ticks: IntArray, values: IntArray | FloatArray) -> None:
        """Add a counter; its value is written where it changes.

        Args:
            parent: uuid of the process or track under which it stands.
            name: shown beside it.
            rank: its place among the tracks of the same parent, from 0.
            unit: of the values.
            ticks: when values hold from, strictly ascending, shape ``(times,)``.
            values: shape ``(times,)``.
        """
        descriptor = self._track(name, parent, rank)
        descriptor.counter.unit_name = unit
        changed = np.append(True, values[1:] != values[:-1])[: len(values)]
        self._samples.append((int(descriptor.uuid), ticks[changed], values[changed]))

    def flow(self) -> int:
        """Return a number for slices that arrows connect."""
        return next(self._flows)

    def slices(self, slices: Sequence[Event]) -> None:
        """Add slices; those of one track must not overlap."""
        self._slices += slices

    def instants(self, instants: Sequence[Event]) -> None:
        """Add instants."""
        self._instants += instants

    def _track(self, name: str, parent: int, rank: int) -> Any:
        packet = self._schema.TracePacket(trusted_packet_sequence_id=_SEQUENCE)
        descriptor = packet.track_descriptor
        descriptor.uuid = next(self._uuids)
        descriptor.name = name
        if parent:
            descriptor.parent_uuid = parent
            descriptor.sibling_order_rank = rank
        self._descriptors.append(packet)
        return descriptor

    def write(self, file: BinaryIO) -> None:
        """Write the trace.

        Raises:
            SpecificationError: a time is beyond what the format's nanoseconds hold.
        """
        kinds, positions, ticks = self._in_order()
        last = int(ticks[-1]) if len(ticks) else 0
        if last > _LAST_NS // _NS_PER_TICK:
            raise SpecificationError(
                f"to_perfetto: the run ends at {last / TICKS_PER_SECOND:g} s; the format holds times up to {_LAST_NS / 1e9:g} s"
            )
        encoder = _Encoder(self._schema, [*self._slices, *self._instants])
        write = file.write
        write(encoder.first())
        for packet in self._descriptors:
            write(_framed(packet.SerializeToString()))
        tracks = np.repeat([track for track, *_ in self._samples], [len(times) for _, times, _ in self._samples]).tolist()
        values = [value for _, _, of_track in self._samples for value in of_track.tolist()]
        for kind, at, now in zip(kinds.tolist(), positions.tolist(), ticks.tolist(), strict=True):
            if kind == _COUNTER:
                write(encoder.counter(now, tracks[at], values[at]))
            elif kind == _BEGIN:
                write(encoder.event(self._slices[at], encoder.BEGIN))
            elif kind == _END:
                write(encoder.end(now, self._slices[at].track))
            else:
                write(encoder.event(self._instants[at], encoder.INSTANT))

    def _in_order(self) -> tuple[npt.NDArray[np.int8], IntArray, IntArray]:
        """Return the kind, the position in its list and the time of each event, in the order in which they are written."""
        begin, end = (np.array([getattr(one, name) for one in self._slices], dtype=np.int64) for name in ("begin", "end"))
        instants = np.array([one.begin for one in self._instants], dtype=np.int64)
        samples = np.concatenate([np.empty(0, dtype=np.int64), *(ticks for _, ticks, _ in self._samples)])
        parts = [(_END, end), (_INSTANT, instants), (_COUNTER, samples), (_BEGIN, begin)]
        kinds = np.concatenate([np.full(len(times), kind, dtype=np.int8) for kind, times in parts])
        positions = np.concatenate([np.arange(len(times)) for _, times in parts])
        ticks = np.concatenate([times for _, times in parts])
        # Slices without any length end just after they begin, before others begin.
        empty = np.concatenate([end == begin, np.zeros(len(instants) + len(samples), dtype=bool), end == begin])
        phase = np.where(empty, _COUNTER, kinds)
        within = np.where(empty, 2 * positions + (kinds == _END), 0)
        order = np.lexsort((within, empty, phase, ticks))
        return kinds[order], positions[order], ticks[order]


class _Encoder:
    """Encodes packets; messages are used again, because making one takes longer than encoding it."""

    def __init__(self, schema: Any, events: Sequence[Event]) -> None:
        self._schema = schema
        kinds = schema.TrackEvent
        self.BEGIN, self.INSTANT = kinds.TYPE_SLICE_BEGIN, kinds.TYPE_INSTANT
        self._categories = {one: at for at, one in enumerate(sorted({event.category for event in events}), 1)}
        all_names = sorted({event.names for event in events})
        names = dict.fromkeys(name for of_one in all_names for name in of_one)
        self._names = {name: at for at, name in enumerate(names, 1)}
        self._with_arguments = {of_one: self._template(of_one) for of_one in all_names}
        self._end, self._count = self._packet(), self._packet()
        self._end.track_event.type = kinds.TYPE_SLICE_END
        self._count.track_event.type = kinds.TYPE_COUNTER

    def _packet(self) -> Any:
        return self._schema.TracePacket(trusted_packet_sequence_id=_SEQUENCE)

    def _template(self, names: tuple[str, ...]) -> tuple[Any, list[Any]]:
        packet = self._packet()
        packet.sequence_flags = packet.SEQ_NEEDS_INCREMENTAL_STATE
        packet.track_event.category_iids.append(0)
        annotations = packet.track_event.debug_annotations
        return packet, [annotations.add(name_iid=self._names[name]) for name in names]

    def first(self) -> bytes:
        """Return the first packet: it begins the sequence and says what numbers stand for."""
        packet = self._packet()
        packet.sequence_flags = packet.SEQ_INCREMENTAL_STATE_CLEARED
        packet.first_packet_on_sequence = True
        for interned, texts in (
            (packet.interned_data.event_categories, self._categories),
            (packet.interned_data.debug_annotation_names, self._names),
        ):
            for text, number in texts.items():
                interned.add(iid=number, name=text)
        return _framed(packet.SerializeToString())

    def event(self, event: Event, kind: int) -> bytes:
        """Return an instant, or the begin of a slice."""
        packet, annotations = self._with_arguments[event.names]
        packet.timestamp = event.begin * _NS_PER_TICK
        track_event = packet.track_event
        track_event.type = kind
        track_event.track_uuid = event.track
        track_event.name = event.name
        track_event.category_iids[0] = self._categories[event.category]
        for annotation, value in zip(annotations, event.arguments, strict=True):
            if isinstance(value, str):
                annotation.string_value = value
            elif isinstance(value, int):
                annotation.int_value = value
            else:
                annotation.double_value = value
        track_event.ClearField("flow_ids")
        track_event.ClearField("terminating_flow_ids")
        if event.flow:
            (track_event.terminating_flow_ids if event.last_of_flow else track_event.flow_ids).append(event.flow)
        return _framed(packet.SerializeToString())

    def end(self, ticks: int, track: int) -> bytes:
        """Return the end of the slice that is open on a track."""
        packet = self._end
        packet.timestamp = ticks * _NS_PER_TICK
        packet.track_event.track_uuid = track
        return _framed(packet.SerializeToString())

    def counter(self, ticks: int, track: int, value: float) -> bytes:
        """Return the value of a counter."""
        packet = self._count
        packet.timestamp = ticks * _NS_PER_TICK
        track_event = packet.track_event
        track_event.track_uuid = track
        if isinstance(value, int):
            track_event.counter_value = value
        else:
            track_event.double_counter_value = value
        return _framed(packet.SerializeToString())


def _framed(packet: bytes) -> bytes:
    """Return a packet as the next one of a ``Trace``: field 1, its length as a varint, its bytes."""
    length = len(packet)
    head = bytearray(b"\x0a")
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    head.append(length)
    return bytes(head) + packet


def require_perfetto(option: str = "to_perfetto") -> None:
    """Refuse to go on without the package perfetto.

    Args:
        option: what needs it.

    Raises:
        SpecificationError: it is missing.
    """
    try:
        import perfetto.protos.perfetto.trace.perfetto_trace_pb2  # noqa: F401, PLC0415  an extra
    except ImportError as problem:
        package = str(problem.name or "perfetto").partition(".")[0]
        raise SpecificationError(missing_package(option, package, "perfetto")) from None


def _schema() -> Any:
    require_perfetto()
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2  # noqa: PLC0415  an extra

    return perfetto_trace_pb2
