"""Tables as columns of NumPy: converted to pandas, or written as Parquet without pandas, which is slow to import."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import Coded, Columns

if TYPE_CHECKING:
    import pandas as pd


def frame(columns: Columns) -> pd.DataFrame:
    """Return columns as a table of pandas."""
    import pandas as pd

    def column(values: npt.NDArray[Any] | Coded) -> Any:
        if isinstance(values, Coded):
            return pd.Categorical.from_codes(values.codes, categories=pd.Index(values.texts))
        return values

    return pd.DataFrame({name: column(values) for name, values in columns.items()})


def parquet(table: Columns | pd.DataFrame) -> bytes:
    """Return a table as a Parquet file."""
    from pyarrow import parquet as pq  # type: ignore[import-untyped]  # noqa: PLC0415

    buffer = io.BytesIO()
    pq.write_table(arrow_table(table), buffer)
    return buffer.getvalue()


def arrow_table(table: Columns | pd.DataFrame) -> Any:
    """Return a table of pyarrow, in which a value is missing where it is not a number."""
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(table, Mapping):
        return pa.table({name: _arrow_array(values) for name, values in table.items()})
    return pa.Table.from_pandas(table, preserve_index=False)


def _arrow_array(values: npt.NDArray[Any] | Coded) -> Any:
    """Return a column as an array of pyarrow, made of its bytes: ``pyarrow.array`` imports pandas."""
    import pyarrow as pa  # noqa: PLC0415

    def made(kind: Any, count: int, *parts: Any) -> Any:
        return pa.Array.from_buffers(kind, count, [part if part is None else pa.py_buffer(part) for part in parts])

    def texts(values: Iterable[str]) -> Any:
        encoded = [text.encode() for text in values]
        begins = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
        return made(pa.string(), len(encoded), None, begins, b"".join(encoded))

    def bits(values: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
        return np.packbits(values, bitorder="little")

    if isinstance(values, Coded):
        return pa.DictionaryArray.from_arrays(_arrow_array(values.codes.astype(np.int32)), texts(values.texts))
    values = np.ascontiguousarray(values)
    match values.dtype.kind:
        case "U":
            return texts(values.tolist())
        case "b":
            return made(pa.bool_(), len(values), None, bits(values))
        case "f":
            return made(pa.float64(), len(values), bits(~np.isnan(values)), values)
    return made(pa.from_numpy_dtype(values.dtype), len(values), None, values)
