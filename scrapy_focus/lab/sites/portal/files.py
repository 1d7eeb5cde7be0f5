"""The files of the synthetic portal: valid small documents whose exact size is known before they are built
(internal).

Every format repeats one record of fixed width, and archives are stored uncompressed, so that a size is one
multiplication: HEAD and ``Content-Length`` never build a body.
"""

from __future__ import annotations

import io
import math
import zipfile
from functools import lru_cache
from random import Random
from statistics import NormalDist
from typing import Final

MIME: Final = {
    "csv": "text/csv",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "json": "application/json",
    "zip": "application/zip",
    "pdf": "application/pdf",
}
SMALLEST, LARGEST = 1_000, 300_000  # bytes
_MEDIAN, _SPREAD = 16_000, 1.1  # bytes, standard deviation of the logarithm

_FORMATS: Final = {  # head, record, tail
    "csv": ("period,region,value\n", "%s,%s,%s\n", ""),
    "json": (
        '{"columns":["period","region","value"],\n"rows":[\n',
        '["%s","%s",%s],\n',
        '["total","all",0.0]\n]}\n',
    ),
    "xlsx": (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>',
        '<row><c t="inlineStr"><is><t>%s</t></is></c><c t="inlineStr"><is><t>%s</t></is></c><c><v>%s</v></c></row>',
        "</sheetData></worksheet>",
    ),
    "ods": (
        '<?xml version="1.0" encoding="UTF-8"?>\n<office:document-content office:version="1.2" '
        'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>'
        '<table:table table:name="data">',
        "<table:table-row><table:table-cell><text:p>%s</text:p></table:table-cell><table:table-cell><text:p>%s"
        "</text:p></table:table-cell><table:table-cell><text:p>%s</text:p></table:table-cell></table:table-row>",
        "</table:table></office:spreadsheet></office:body></office:document-content>",
    ),
    "pdf": ("BT /F1 9 Tf 11 TL 40 800 Td\n", "(%s  %s  %s) Tj T*\n", "ET"),
}
_FORMATS["zip"] = _FORMATS["csv"]
_PERIODS: Final = [f"{year}-Q{quarter}" for year in range(1990, 2025) for quarter in (1, 2, 3, 4)]
_REGIONS: Final = [f"R{region:02d}" for region in range(100)]

_RELATIONSHIPS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PARTS: Final[dict[str, tuple[tuple[str, str], ...]]] = {  # the last part holds the records
    "zip": (("README.txt", "Source: national statistics portal.\n"), ("data.csv", "")),
    "xlsx": (
        (
            "[Content_Types].xml",
            '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{MIME["xlsx"]}.main+xml"/>'
            '<Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument'
            '.spreadsheetml.worksheet+xml"/></Types>',
        ),
        (
            "_rels/.rels",
            f'<?xml version="1.0"?><Relationships xmlns="{_RELATIONSHIPS}"><Relationship Id="rId1" '
            f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        ),
        (
            "xl/workbook.xml",
            '<?xml version="1.0"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
            f'xmlns:r="{_OFFICE}"><sheets><sheet name="data" sheetId="1" r:id="rId1"/></sheets></workbook>',
        ),
        (
            "xl/_rels/workbook.xml.rels",
            f'<?xml version="1.0"?><Relationships xmlns="{_RELATIONSHIPS}"><Relationship Id="rId1" '
            f'Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        ),
        ("xl/worksheets/sheet1.xml", ""),
    ),
    "ods": (
        ("mimetype", MIME["ods"]),
        (
            "META-INF/manifest.xml",
            '<?xml version="1.0"?><manifest:manifest '
            'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
            f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{MIME["ods"]}"/>'
            '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
            "</manifest:manifest>",
        ),
        ("content.xml", ""),
    ),
}


def records_for(extension: str, uniform: float) -> int:
    """Return the number of records of a file whose size has quantile `uniform` (in (0, 1)) of the log-normal law."""
    wanted = _MEDIAN * math.exp(_SPREAD * NormalDist().inv_cdf(uniform))
    fixed, width = _measure(extension)
    return max(1, math.ceil((SMALLEST - fixed) / width), int((min(wanted, LARGEST) - fixed) / width))


def size_of(extension: str, n_records: int) -> int:
    """Return the length in bytes of ``build(extension, n_records, any_seed)``, without building it."""
    fixed, width = _measure(extension)
    return fixed + width * n_records


def build(extension: str, n_records: int, seed: int) -> bytes:
    """Return a valid document of that format; O(n_records), about 0.3 microseconds each."""
    rng = Random(seed)
    head, record, tail = _FORMATS[extension]
    cells: list[str] = []
    for k in range(n_records):
        cells += (_PERIODS[k % 140], _REGIONS[k // 140 % 100], f"{100_000 + 899_999 * rng.random():.1f}")
    text = (head + record * n_records + tail) % tuple(cells)
    if extension in _PARTS:
        return _archive(extension, text)
    return _pdf(text) if extension == "pdf" else text.encode()


def picture(size: int, seed: int) -> bytes:
    """Return `size` bytes that begin and end like a JPEG."""
    return b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + Random(seed).randbytes(size - 13) + b"\xff\xd9"


def film(size: int, seed: int) -> bytes:
    """Return `size` bytes in two MP4 boxes, the second of them noise."""
    kind = b"\x00\x00\x00\x14ftypisom\x00\x00\x02\x00isom"
    return kind + (size - len(kind)).to_bytes(4, "big") + b"mdat" + Random(seed).randbytes(size - len(kind) - 8)


@lru_cache(maxsize=len(MIME))
def _measure(extension: str) -> tuple[int, int]:
    """Return the size of a document without records and the width of one record, in bytes."""
    return len(build(extension, 0, 0)), len(_FORMATS[extension][1] % (_PERIODS[0], _REGIONS[0], "100000.0"))


def _archive(extension: str, text: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        *fixed, (last, _) = _PARTS[extension]
        for name, content in (*fixed, (last, text)):
            info = zipfile.ZipInfo(name)
            info.create_system = 3  # the same bytes on Windows
            archive.writestr(info, content)
    return out.getvalue()


def _pdf(stream: str) -> bytes:
    # Integers are zero-padded so that their width does not depend on the number of records.
    objects = (
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        f"<</Length {len(stream):010d}>>\nstream\n{stream}\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Courier>>",
    )
    out, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n"
    table = "0000000000 65535 f \n" + "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    trailer = f"trailer\n<</Size 6/Root 1 0 R>>\nstartxref\n{len(out):010d}\n%%EOF\n"
    return f"{out}xref\n0 6\n{table}{trailer}".encode()
