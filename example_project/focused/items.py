"""What the spiders of this project yield."""

from dataclasses import dataclass, field


@dataclass
class DataFile:
    """One data file that was found and stored."""

    url: str
    mime: str  # as the server says, without parameters
    size: int  # bytes
    page: str  # URL of the page on which it was found
    anchor: str  # text of the link to it
    name: str  # as its server or URL calls it
    sha256: str = ""
    path: str = ""  # where it is stored
    body: bytes = field(default=b"", repr=False)  # until it is stored
