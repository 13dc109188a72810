import json
import math
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from sim.record.committed import SchemaMismatch
from sim.record.project import Numbers, Project
from sim.types import Measurement

FULL = Measurement(
    metric="efficiency",
    value=0.5,
    unit="share",
    n=4,
    n_clusters=2,
    ci=(0.25, 0.75),
    ci_method="t",
    events=(3, 1),
    excluded={"defaulted": 2},
    flags=("small",),
    of={"table": 0, "agent": "ann"},
)
WRITERS = """
import os
import sys
from pathlib import Path
from sim.record.project import Numbers, Project
from sim.types import Measurement

def write(run):
    project = Project(Path(sys.argv[1]))
    for number in range(30):
        project.measure(run, [Measurement(metric=f"m{number}", value=1.0)])
        project.tag(run, "done")
    project.close()

for number in range(3):
    if os.fork() == 0:
        write(f"r{number}")
        os._exit(0)
sys.exit(sum(os.wait()[1] for _ in range(3)))
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "project.db"


@pytest.fixture
def project(path):
    with closing(Project(path)) as project:
        yield project


def test_a_measurement_comes_back_whole(project):
    undefined = Measurement(metric="ratio", value=None, flags=("n_clusters<2",))
    project.measure("r1", [FULL, undefined])
    assert list(project.measurements("r1")) == [("r1", FULL), ("r1", undefined)]


def test_a_measurement_replaces_one_of_the_same_metric_about_the_same(project):
    project.measure("r1", [FULL, Measurement(metric="efficiency", value=1.0)])
    newer = Measurement(metric="efficiency", value=0.75, of={"agent": "ann", "table": 0})
    project.measure("r1", [newer])
    project.measure("r2", [FULL])
    values = [(run, one.value) for run, one in project.measurements(metric="efficiency")]
    assert sorted(values) == [("r1", 0.75), ("r1", 1.0), ("r2", 0.5)]
    assert [one.value for _, one in project.measurements("r2", "other")] == []


@pytest.mark.parametrize("bad", [{"value": math.nan}, {"value": math.inf}, {"value": 1.0, "ci": (0.0, math.inf)}])
def test_a_number_that_is_none_is_refused_and_nothing_kept(project, bad):
    with pytest.raises(ValueError, match="the value is None"):
        project.measure("r1", [FULL, Measurement(metric="ratio", **bad)])
    assert list(project.measurements()) == []


def test_numbers_so_far_stand_apart_until_there_are_final_ones(project):
    other = Measurement(metric="other", value=None, n=3, flags=("none yet",))
    project.measure_so_far("r1", [FULL, other], 10, 100)
    assert project.so_far("r1") == [(10, FULL), (10, other)]
    assert list(project.measurements("r1")) == []
    assert (project.overall(), project.so_far("r2")) == ({}, [])
    later = Measurement(metric="other", value=2.0)
    project.measure_so_far("r1", [later], 20, 150, asked="m:other")
    assert project.so_far("r1") == [(10, FULL), (20, later)], "of a number that several ask for, the latest"
    project.measure_so_far("r1", [other], 30, 200)
    assert project.so_far("r1") == [(30, other)], "what is not measured any more is gone"
    project.measure("r1", [later])
    assert project.so_far("r1") == []
    project.measure_so_far("r1", [FULL], 40, 300)
    assert project.so_far("r1") == [], "who comes late does not bring them back"
    with pytest.raises(ValueError, match="the value is None"):
        project.measure_so_far("r3", [Measurement(metric="ratio", value=math.nan)], 1, 1)


def test_tags(project):
    project.tag("r1", "keep", "paper")
    project.tag("r2", "keep")
    project.tag("r1", "keep")
    assert project.tags("r1") == ("keep", "paper")
    assert project.tagged("keep") == ("r1", "r2")
    project.untag("r1", "keep")
    project.untag("r1", "never")
    assert (project.tags("r1"), project.tagged("keep")) == (("paper",), ("r2",))


def test_reading_makes_no_file(path, project):
    project.tag("r1", "keep")
    project.measure("r1", [FULL, Measurement(metric="n", value=1.0)])
    project.measure("r2", [Measurement(metric="b", value=2.0), Measurement(metric="a", value=None)])
    with Numbers(path) as numbers:
        assert numbers.all_tags() == {"r1": ("keep",)}
        assert {run: [one.metric for one in found] for run, found in numbers.overall().items()} == {
            "r1": ["n"],
            "r2": ["a", "b"],
        }
    with pytest.raises(FileNotFoundError):
        Numbers(path.with_name("none.db"))
    assert not path.with_name("none.db").exists()


def test_a_run_is_forgotten_whole(project):
    for run in ("r1", "r2"):
        project.tag(run, "keep")
        project.measure(run, [FULL])
    project.measure_so_far("r3", [FULL], 1, 1)
    project.forget("r1")
    project.forget("r3")
    assert project.so_far("r3") == []
    assert project.tagged("keep") == ("r2",)
    assert [run for run, _ in project.measurements()] == ["r2"]


def test_several_processes_write_at_once(path):
    subprocess.run([sys.executable, "-c", WRITERS, str(path)], check=True)
    with closing(Project(path)) as project:
        assert len(list(project.measurements())) == 90
        assert project.tagged("done") == ("r0", "r1", "r2")


def test_stored_json_is_strict(path, project):
    project.measure("r1", [FULL])
    with closing(sqlite3.connect(path)) as raw:
        texts = raw.execute("SELECT of, events, excluded, flags FROM measurements").fetchone()
    assert [json.loads(text) for text in texts] == [{"agent": "ann", "table": 0}, [3, 1], {"defaulted": 2}, ["small"]]
    assert texts[0] == '{"agent":"ann","table":0}'


@pytest.mark.parametrize("change", ["ALTER TABLE measurements DROP COLUMN denominator", "DROP TABLE so_far"])
def test_a_file_of_an_earlier_version_is_brought_up_to_date_and_keeps_what_it_holds(path, project, change):
    project.tag("run", "kept")
    project.close()
    with sqlite3.connect(path) as file:
        file.execute(change)
    with pytest.raises(SchemaMismatch, match="of an earlier agora-sim; bring it up to date: agora measure"):
        Numbers(path)
    with Project(path) as renewed:
        one = Measurement(metric="m", value=1.0, denominator="decisions")
        renewed.measure("run", [one])
        assert list(renewed.measurements()) == [("run", one)]
        assert renewed.tags("run") == ("kept",)
