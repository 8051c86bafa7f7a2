"""What a page of a profile says of its machine."""

from attrs import evolve
from page_reports import compute, report

from pypoplar.report.page import write_page


def test_a_page_names_the_machine_and_not_its_architecture_alone(tmp_path):
    made = report(compute("work", 0, [200] * 4))
    target = evolve(made.compilation.target, system="bow", architecture="ipu2")
    made = evolve(made, compilation=evolve(made.compilation, target=target))
    write_page(made, tmp_path / "page.html")
    assert "4 tiles of bow" in (tmp_path / "page.html").read_text(encoding="utf-8")
