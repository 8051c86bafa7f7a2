"""PopART's names and numbers are there without its extra, and as ``popart`` for scripts."""

import subprocess
import sys

import pytest

from pypoplar import popart
from pypoplar.errors import MissingFeature


def test_enumerations_have_popart_s_numbers():
    assert int(popart.AccumulateOuterFragmentSchedule.OverlapMemoryOptimized) == 3
    assert int(popart.SyntheticDataMode.RandomNormal) == 2
    assert int(popart.SubgraphCopyingStrategy.JustInTime) == 1
    assert [int(one) for one in (popart.RecomputationType.Standard, popart.RecomputationType.Pipeline)] == [1, 3]
    assert int(popart.VirtualGraphMode.Manual) == 1
    assert int(popart.BatchSerializationBatchSchedule.Isomorphic) == 1
    assert popart.versionString()[0].isdigit()


def test_every_public_name_is_there():
    pytest.importorskip("onnx")
    pytest.importorskip("torch")
    assert [name for name in popart.__all__ if getattr(popart, name) is None] == []
    with pytest.raises(AttributeError, match=r"no attribute 'Bulder'.*Builder"):
        popart.Bulder


def test_types_and_anchors_say_what_they_are():
    info = popart.TensorInfo("FLOAT", [2, 3])
    assert (info.shape(), info.dtype().name, info.data_type_lcase()) == ([2, 3], "float32", "float32")
    assert popart.AnchorReturnType("everyN", 2).rp() == 2
    for make, message in (
        (lambda: popart.TensorInfo("FLOTA", [1]), "no type 'FLOTA'.*FLOAT"),
        (lambda: popart.AnchorReturnType("Al"), "no 'Al'.*All"),
        (lambda: popart.DataFlow(0, []), "batchesPerStep is a whole number from 1 on, got 0"),
        (lambda: popart.DataFlow(3, {"x": popart.AnchorReturnType("EveryN", 2)}), "does not divide 3"),
        (lambda: popart.DeviceManager().acquireAvailableDevice(3), "a power of two"),
    ):
        with pytest.raises(popart.popart_exception, match=message):
            make()


def test_options_are_known_work_or_are_refused(caplog):
    options = popart.SessionOptions()
    options.enableOutlining = False
    assert "enableOutlining changes nothing" in caplog.text
    with pytest.raises(popart.popart_exception, match=r"no option 'enableOutlinig'.*enableOutlining"):
        options.enableOutlinig = True
    with pytest.raises(MissingFeature, match="replicas"):
        options.replicatedGraphCount = 2
    with pytest.raises(MissingFeature, match=r"SessionOptions\.syntheticDataMode is 1"):
        options.syntheticDataMode = 1
    options.instrumentWithHardwareCycleCounter = True
    assert "instrumentWithHardwareCycleCounter changes nothing" in caplog.text


@pytest.mark.parametrize("module", ["pypoplar.poptorch", "pypoplar.popart"])
def test_scripts_import_popart_by_its_name(tmp_path, module):
    pytest.importorskip("torch")
    script = tmp_path / "script.py"
    script.write_text(
        "import popart, pypoplar.popart\nassert popart is pypoplar.popart\nprint(int(popart.SyntheticDataMode.Zeros))\n"
    )
    done = subprocess.run([sys.executable, "-m", module, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
