"""The old path of `pypoplar.pva.write_page` and `write_comparison`."""

from pypoplar.pva import write_comparison as write_comparison
from pypoplar.pva import write_page as write_page
