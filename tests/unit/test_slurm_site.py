"""Sites from Slurm's own output: what each setting becomes, what is left out, what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clustermodel import (
    QOS,
    FairShare,
    Limits,
    Machine,
    Multifactor,
    Scenario,
    Site,
    SlurmSite,
    TraceError,
    Workload,
    read_slurm_site,
)
from clustermodel.machine.node_type import NodeType
from clustermodel.machine.partition import Partition
from clustermodel.machine.reservation import Reservation
from tests.conftest import Finished, refusal
from tests.shared_data import site_case

CONF = """\
# A cluster of 67 nodes.
ClusterName=tor
SlurmctldHost=head(10.0.0.1)
SchedulerType=sched/backfill
PriorityType=priority/multifactor
PriorityDecayHalfLife=14-0
PriorityMaxAge=2-0
PriorityWeightAge=1000
PriorityWeightFairshare=10000   # most
PriorityWeightQOS=2000
AccountingStorageEnforce=associations,limits,qos
NodeName=DEFAULT CPUs=64 RealMemory=256000
NodeName=n[001-064,070] Features=ib
NodeName=g[1-2] Gres=gpu:a100:4 \\
  Weight=10
NodeName=later State=FUTURE
NodeSet=wide Feature=ib
PartitionName=DEFAULT MaxTime=2-00:00:00 State=UP
PartitionName=batch Nodes=wide Default=YES
PartitionName=debug Nodes=n[061-064] MaxTime=30 MaxNodes=2 PriorityTier=10 AllowAccounts=physics
PartitionName=gpu Nodes=g[1-2] QoS=gpu OverSubscribe=EXCLUSIVE
"""
PARTITIONS = [
    Partition(name="batch", nodes="0-64", max_wall_time_s=172_800, priority=1, default=True),
    Partition(name="debug", nodes="60-63", max_wall_time_s=1800, max_nodes=2, priority=10),
    Partition(name="gpu", nodes="65-66", max_wall_time_s=172_800, priority=1),
]
NODES = """\
NodeName=n1 Arch=x86_64 CoresPerSocket=22
   CPUAlloc=1 CPUEfctv=44 CPUTot=44 CPULoad=1.02
   AvailableFeatures=(null)
   ActiveFeatures=(null)
   Gres=(null)
   OS=Linux 3.10.0-693.el7.x86_64 #1 SMP Thu Jan 4 01:06:37 UTC 2018
   RealMemory=385300 AllocMem=61440 FreeMem=358601 Sockets=2 Boards=1
   State=MIXED ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=short,long

NodeName=n2 Arch=x86_64 CoresPerSocket=22
   CPUAlloc=0 CPUTot=44 Gres=gpu:v100:2(S:0-1) OS=Linux 3.10.0 #1 SMP
   State=DOWN*+DRAIN ThreadsPerCore=1 Reason=Not responding [slurm@2024-01-02T03:04:05]
"""
SHOWN = """\
PartitionName=short
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   DefaultTime=01:00:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO
   MaxNodes=UNLIMITED MaxTime=1-12:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED MaxCPUsPerSocket=UNLIMITED
   Nodes=n[1-2]
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=OFF
   State=DOWN TotalCPUs=88 TotalNodes=2 SelectTypeParameters=NONE
   JobDefaults=(null)
   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
   TRES=cpu=88,mem=770600M,node=2,billing=88

PartitionName=CPU nodes (old) AllowGroups=ALL Default=NO MaxTime=UNLIMITED Nodes=n2 PriorityJobFactor=3 PriorityTier=1 State=UP
PartitionName=empty Nodes=(null) State=UP
"""
QOS_HEADER = (
    "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|Flags|UsageThres|UsageFactor|GrpTRES|GrpTRESMins|"
    "GrpTRESRunMins|GrpJobs|GrpSubmit|GrpWall|MaxTRES|MaxTRESPerNode|MaxTRESMins|MaxWall|MaxTRESPU|MaxJobsPU|MaxSubmitPU|"
    "MaxTRESPA|MaxTRESRunMinsPA|MaxTRESRunMinsPU|MaxJobsPA|MaxSubmitPA|MinTRES"
)
ASSOCIATION_HEADER = (
    "Cluster|Account|User|Partition|Share|Priority|GrpJobs|GrpTRES|GrpSubmit|GrpWall|GrpTRESMins|MaxJobs|MaxTRES|"
    "MaxTRESPerNode|MaxSubmit|MaxWall|MaxTRESMins|QOS|Def QOS|GrpTRESRunMins"
)


def table(header: str, *rows: dict[str, str], end: str = "") -> str:
    names = header.split("|")
    assert all(row.keys() <= {*names} for row in rows)
    return "".join(f"{line}{end}\n" for line in (header, *("|".join(row.get(name, "") for name in names) for row in rows)))


def qos(*rows: dict[str, str]) -> str:
    empty = {"Priority": "0", "GraceTime": "00:00:00", "PreemptMode": "cluster", "UsageFactor": "1.000000"}
    return table(QOS_HEADER, *(empty | row for row in rows))


def associations(*rows: dict[str, str], end: str = "") -> str:
    return table(ASSOCIATION_HEADER, *({"Cluster": "tor", "Share": "1"} | row for row in rows), end=end)


TREE = associations(
    {"Account": "root"},
    {"Account": " root", "User": "root"},
    {"Account": " physics", "Share": "2", "GrpTRES": "node=40"},
    {"Account": "  bio", "Share": "3", "GrpJobs": "20", "MaxJobs": "2"},
    {"Account": "   bio", "User": "ann", "MaxJobs": "2"},
    {"Account": "   bio", "User": "bob", "MaxJobs": "2", "Share": "4"},
    {"Account": "  astro", "Share": "1"},
    {"Account": "   astro", "User": "cyd", "Share": "parent", "MaxJobs": "5"},
    {"Account": "   astro", "User": "dan", "MaxJobs": "7", "MaxTRES": "cpu=640,node=10", "MaxWall": "1-00:00:00"},
)
HIGH = {
    "Name": "high", "Priority": "100", "Preempt": "normal", "Flags": "DenyOnLimit", "GrpTRES": "node=32,mem=4T",
    "GrpTRESRunMins": "node=60000", "MaxTRES": "node=16", "MaxWall": "1-00:00:00", "MaxJobsPU": "2", "MaxSubmitPU": "10",
}  # fmt: skip
GPU = {"Name": "gpu", "Priority": "50", "MaxJobsPU": "1", "MaxTRESPA": "node=2"}

Read = Callable[..., SlurmSite]
Command = Callable[..., Finished]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(*texts: str, **options: Any) -> SlurmSite:
        paths = [tmp_path / f"{number}.txt" for number, _ in enumerate(texts)]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        return read_slurm_site(*paths, **options)

    return read


def test_slurm_conf(read: Read, tmp_path: Path) -> None:
    slurm = read(CONF)
    assert slurm.nodes == len(slurm.node_names) == 67
    assert (slurm.node_names[0], slurm.node_names[64:]) == ("n001", ("n070", "g1", "g2"))
    assert list(slurm.site.partitions) == PARTITIONS
    assert list(slurm.site.node_types) == [NodeType(name="ib", nodes="0-64", features="ib")]
    assert slurm.site.order == Multifactor(
        age=1000, fair_share=10_000, qos=2000, max_age_s=172_800, half_life_s=14 * 86_400
    )  # fmt: skip
    assert slurm.site.limits == ()
    assert slurm.read == (f"{tmp_path}/0.txt: 68 nodes, 3 partitions, 9 settings",)
    assert slurm.left_out == (
        "Weight of nodes: jobs take nodes first that the fewest partitions have",
        "State=FUTURE of node later: nodes that do not exist yet are no part of the machine",
        "AllowAccounts of partition debug: who may use a partition is no rule of the model; the jobs of a log did",
        "RealMemory of nodes: memory is a field of the machine (--node-memory 250)",
        "QoS of partition gpu: its limits are those of gpu; give the output of sacctmgr show qos -P too",
        "PriorityWeightFairshare: beside other weights it is the classic factor, not Fair Tree's rank",
        "SchedulerType: how the queue is worked off is the policy's (--policy)",
    )


def test_scontrol_says_the_same_on_one_line_and_on_several(read: Read) -> None:
    slurm = read(NODES, SHOWN)
    assert slurm.node_names == ("n1", "n2")
    assert list(slurm.site.partitions) == [
        Partition(name="short", nodes="0-1", max_wall_time_s=129_600, default=True),
        Partition(name="CPU nodes (old)", nodes="1"),
    ]
    assert slurm.left_out == (
        "State of n2: nodes that are down now are part of the machine; outages are given with --outages",
        "DefaultTime of partition short: the jobs of a log have their own limits",
        "State=DOWN of partition short: the partition is as if it were up",
        "Nodes of partition empty: the partition has no nodes",
        "RealMemory of nodes: memory is a field of the machine (--node-memory 376.27)",
    )
    lines = [" ".join(line.split()) for line in (NODES + "\n" + SHOWN).replace("\n   ", " ").splitlines()]
    assert read("\n".join(lines)).site == slurm.site


@pytest.mark.parametrize(("unit", "nodes", "of_n2"), [("nodes", 2, "1"), ("cores", 88, "44-87"), ("gpus", 2, "0-1")])
def test_nodes_are_counted_in_units(read: Read, unit: str, nodes: int, of_n2: str) -> None:
    slurm = read(NODES, SHOWN, unit=unit)
    assert (slurm.nodes, slurm.site.partitions[-1].nodes) == (nodes, of_n2)


def test_nodes_that_differ_in_memory_or_features_have_types(read: Read) -> None:
    nodes = ("n[1-2] RealMemory=1024", "n3 RealMemory=2048 Feature=ib,big", "n4 RealMemory=1024 Feature=ib")
    conf = "".join(f"NodeName={each}\n" for each in nodes)
    assert list(read(conf).site.node_types) == [
        NodeType(name="1024 MiB", nodes="0-1", memory_gib=1),
        NodeType(name="ib+big 2048 MiB", nodes="2", memory_gib=2, features=["ib", "big"]),
        NodeType(name="ib 1024 MiB", nodes="3", memory_gib=1, features="ib"),
    ]
    same = read("NodeName=n[1-2] Features=ib\n")
    assert (same.site, same.left_out) == (Site(), ("Features of nodes: all nodes are alike",))
    unknown = read(conf, "PartitionName=p Nodes=n[1-5]\n")  # no memory is known of n5
    assert [(each.name, each.memory_gib) for each in unknown.site.node_types] == [("ib+big", None), ("ib", None)]
    cores = read(conf.replace("\n", " CPUs=2\n"), unit="cores")
    assert (cores.nodes, cores.site.node_types) == (8, ())
    assert cores.left_out == (
        "RealMemory of nodes: memory is a field of the machine (--node-memory)",
        "Features of nodes: the model counts cores",
    )


def test_limits_of_qos_and_of_the_qos_of_a_partition(read: Read) -> None:
    slurm = read(CONF, qos({"Name": "normal"}, HIGH, GPU))
    assert list(slurm.site.limits) == [
        Limits(qos="high", nodes=32, node_hours=1000, wall_time_s=86_400, job_nodes=16),
        Limits(user="*", qos="high", running_jobs=2, submitted_jobs=10),
        Limits(user="*", qos="gpu", running_jobs=1),
        Limits(account="*", qos="gpu", nodes=2),
    ]
    assert list(slurm.site.qos) == [QOS(name="gpu", partitions=["gpu"])]
    assert isinstance(slurm.site.order, Multifactor)
    assert slurm.site.order.qos_values == {"high": 1, "gpu": 0.5}
    assert "GrpTRES=mem of QOS high: the model counts nodes" in slurm.left_out
    assert "Preempt of QOS high: what preempts what is the policy's" in slurm.left_out


def test_limits_and_shares_of_associations(read: Read) -> None:
    slurm = read("PriorityWeightFairshare=1\n", TREE)
    assert list(slurm.site.limits) == [
        Limits(account=["physics", "bio", "astro"], nodes=40),
        Limits(account="bio", running_jobs=20),
        Limits(user="*", account="bio", running_jobs=2),
        Limits(user="cyd", account="astro", running_jobs=5),
        Limits(user="dan", account="astro", running_jobs=7, job_nodes=10, wall_time_s=86_400),
    ]
    tree = {"physics": 2, "physics/bio": 3, "physics/astro": 1}
    assert slurm.site.order == FairShare(account_shares=tree, user_shares={"bob": 4, "cyd": "parent"})
    assert slurm.left_out == ("MaxTRES=cpu of user dan: the model counts nodes (--unit cores)",)


def test_parents_may_be_a_column_and_a_stroke_may_end_lines(read: Read) -> None:
    header = "Account|User|ParentName|Share|GrpJobs"
    rows = [
        ("root", "", "", "1", ""),
        ("bio", "", "physics", "3", ""),
        ("physics", "", "root", "2", ""),
        ("bio", "u", "", "1", "4"),
    ]
    text = "".join(f"{'|'.join(row)}|\n" for row in (header.split("|"), *rows))
    slurm = read("PriorityWeightFairshare=1\n", text)
    assert slurm.site == Site(
        order=FairShare(account_shares={"physics": 2, "physics/bio": 3}),
        limits=[Limits(account="bio", user="u", running_jobs=4)],
    )
    assert not slurm.left_out


@pytest.mark.parametrize(
    ("texts", "site", "left_out"),
    [
        # Limits that slurm.conf does not have kept are none.
        (
            ("ClusterName=tor\nAccountingStorageEnforce=associations\n", qos(HIGH)),
            Site(),
            "limits of QOS and associations: AccountingStorageEnforce of slurm.conf does not have them kept",
        ),
        (
            ("ClusterName=b\n", associations({"Cluster": "a", "Account": "x"})),
            Site(),
            "limits of QOS and associations: AccountingStorageEnforce of slurm.conf does not have them kept",
        ),
        (
            (associations({"Account": "x", "GrpJobs": "1"}, {"Cluster": "b", "Account": "x", "GrpJobs": "2"}),),
            Site(limits=[Limits(account="x", running_jobs=1)]),
            "associations of cluster b: the site is that of cluster tor",
        ),
        (
            (associations({"Account": "x", "Share": "2"}),),
            Site(),
            "Share of associations: they count where PriorityType is priority/multifactor and has weights (slurm.conf, "
            "scontrol show config)",
        ),
        (
            (associations({"Account": "x", "User": "u", "MaxJobs": "0"}),),
            Site(),
            "MaxJobs=0 of account x: it would reject all these jobs; leave them out of the workload if they are not to run",
        ),
        (("Include nodes.conf\n",), Site(), "Include nodes.conf: give the other file too"),
        (
            ("ReservationName=m StartTime=2024-01-01T00:00:00\n",),
            Site(),
            "StartTime of reservation m: say when the log begins (--start)",
        ),
        (
            ("PriorityWeightJobSize=5\nPriorityFavorSmall=YES\nPriorityWeightPartition=2\n",),
            Site(order=Multifactor(age=0, partition=2)),
            "PriorityFavorSmall: small jobs first is no factor of the model",
        ),
        (
            ("PriorityWeightFairshare=3\nPriorityFlags=NO_FAIR_TREE\nPriorityDecayHalfLife=0\n",),
            Site(order=Multifactor(age=0, fair_share=3, half_life_s=1e10)),
            "PriorityWeightFairshare: beside other weights it is the classic factor, not Fair Tree's rank",
        ),
    ],
)
def test_what_is_left_out(read: Read, texts: tuple[str, ...], site: Site, left_out: str) -> None:
    slurm = read(*texts)
    assert (slurm.site, slurm.left_out) == (site, (left_out,))


RESERVATIONS = """\
ReservationName=maint StartTime=2024-01-01T08:00:00 EndTime=2024-01-01T12:00:00 Duration=04:00:00
   Nodes=n[1-4] NodeCnt=4 CoreCnt=8 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES,WEEKLY
   TRES=cpu=8
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null)

ReservationName=course StartTime=2024-01-10T00:00:00 EndTime=2024-01-11T00:00:00 Nodes=n2 Flags= Accounts=bio,chem Users=(null)
ReservationName=past StartTime=2024-01-02T00:00:00 EndTime=2024-01-03T00:00:00 Nodes=n2 Accounts=bio
ReservationName=begun StartTime=2024-01-02T00:00:00 EndTime=2024-01-10T00:00:00 Nodes=n3 Accounts=bio
ReservationName=others StartTime=2024-01-10T00:00:00 EndTime=2024-01-11T00:00:00 Nodes=n2 Accounts=-bio
ReservationName=days StartTime=2024-01-10T00:00:00 EndTime=2024-01-10T01:00:00 Nodes=n2 Flags=WEEKDAY Users=ann
ReservationName=ends StartTime=2024-01-06T22:00:00 EndTime=2024-01-07T10:00:00 Nodes=n5 Flags=WEEKEND Users=-ann,-eve
ReservationName=hours StartTime=2024-01-08T23:50:00 EndTime=2024-01-09T00:20:00 Nodes=n6 Flags=HOURLY Users=ann
ReservationName=floats StartTime=2024-01-10T00:00:00 EndTime=2024-01-11T00:00:00 Nodes=n2 Flags=TIME_FLOAT Users=ann
ReservationName=group StartTime=2024-01-10T00:00:00 EndTime=2024-01-11T00:00:00 Nodes=n2 Groups=staff
ReservationName=mixed StartTime=2024-01-10T00:00:00 EndTime=2024-01-11T00:00:00 Nodes=n2 Users=ann,-eve
ReservationName=elsewhere StartTime=2024-01-10T00:00:00 EndTime=2024-01-11T00:00:00 Nodes=(null) Users=ann
"""


RESERVED_LOCALLY = """\
ReservationName=once StartTime=2024-07-01T08:00:00 EndTime=2024-07-01T12:00:00 Nodes=n1
ReservationName=daily StartTime=2024-01-02T08:00:00 EndTime=2024-01-02T12:00:00 Nodes=n2 Flags=DAILY
ReservationName=early StartTime=2024-01-01T00:30:00 EndTime=2024-01-01T01:30:00 Nodes=n3 Flags=WEEKEND
ReservationName=winter StartTime=2024-12-02T08:00:00 EndTime=2024-12-02T12:00:00 Nodes=n4
"""


def test_reservations_of_a_time_zone(read: Read) -> None:
    """Slurm prints local times; a log that is read with its time zone, and its ``StartTime``, are in UTC.

    Berlin is two hours ahead of UTC in July, and one in winter.  A window at 8 recurs at 8 in summer too.
    """
    day, hour = 86_400, 3600
    start = "2024-06-30T22:00:00"  # Monday, 1 July, 0:00 in Berlin
    slurm = read("NodeName=n[1-4]\n", RESERVED_LOCALLY, start=start, timezone="Europe/Berlin")
    saturday = 5 * day + hour // 2
    winter = 154 * day + 9 * hour  # 2 December, 8:00 in Berlin, is 154 days and 9 hours of elapsed time later
    assert list(slurm.site.reservations) == [
        Reservation(nodes="0", start_s=8 * hour, end_s=12 * hour, name="once"),
        Reservation(nodes="1", start_s=8 * hour, end_s=12 * hour, every_s=day, name="daily"),
        *(
            Reservation(nodes="2", start_s=saturday + shift, end_s=saturday + shift + hour, every_s=7 * day, name="early")
            for shift in (0, day)
        ),
        Reservation(nodes="3", start_s=winter, end_s=winter + 4 * hour, name="winter"),
    ]
    assert "timezone: 'Berlin'" in refusal(lambda: read(CONF, timezone="Berlin"))


def test_reserved_nodes_that_no_file_describes(read: Read) -> None:
    text = "ReservationName=r StartTime=2024-01-01T00:00:00 EndTime=2024-01-02T00:00:00 Nodes=n[2-4]\n"
    inner = "ReservationName=k StartTime=2024-01-01T00:00:00 EndTime=2024-01-02T00:00:00 Nodes=k4 NodeName=k4 CoreIDs=0-3\n"
    slurm = read("NodeName=n[1-2] CPUs=2\n", text, start="2024-01-01T00:00:00", unit="gpus")
    assert "StartTime of reservation r: its nodes have no gpus" in slurm.left_out
    slurm = read("NodeName=n[1-2]\n", text, inner, start="2024-01-01T00:00:00")
    assert list(slurm.site.reservations) == [Reservation(nodes="1", start_s=0, end_s=86_400, name="r")]
    assert slurm.left_out == (
        "Nodes of reservation r: no file describes n3 and 1 more",
        "StartTime of reservation k: no file describes its nodes",
    )


def test_reservations_are_on_the_clock_of_the_jobs(read: Read) -> None:
    day, hour = 86_400, 3600
    monday, saturday = 6 * day, 4 * day
    weekly = [1 * day, 2 * day, 3 * day, 6 * day, 7 * day]  # Wednesday 10 January to Friday, then Monday and Tuesday
    slurm = read("NodeName=n[1-8]\n", RESERVATIONS, start="2024-01-09T00:00:00")  # a Tuesday
    assert list(slurm.site.reservations) == [
        Reservation(nodes="0-3", start_s=monday + 28_800, end_s=monday + 43_200, every_s=604_800, users="root", name="maint"),
        Reservation(nodes="1", start_s=86_400, end_s=172_800, accounts=["bio", "chem"], name="course"),
        Reservation(nodes="2", start_s=0, end_s=86_400, accounts="bio", name="begun"),
        Reservation(nodes="1", start_s=86_400, end_s=172_800, accounts="-bio", name="others"),
        *(Reservation(nodes="1", start_s=at, end_s=at + hour, every_s=7 * day, users="ann", name="days") for at in weekly),
        *(
            Reservation(nodes="4", start_s=at, end_s=at + 12 * hour, every_s=7 * day, users=["-ann", "-eve"], name="ends")
            for at in (saturday + 22 * hour, saturday + 46 * hour)
        ),
        Reservation(nodes="5", start_s=0, end_s=1200, users="ann", name="hours"),  # it has begun before the log
        Reservation(nodes="5", start_s=3000, end_s=4800, every_s=hour, users="ann", name="hours"),
    ]
    assert slurm.left_out == (
        "StartTime of reservation past: it is over when the log begins",
        "StartTime of reservation floats: its begin moves on as time passes, so that it never comes",
        "StartTime of reservation group: reservations are for accounts and users, not for groups",
        "StartTime of reservation mixed: some of its names have a minus and some have none",
        "StartTime of reservation elsewhere: it has no nodes",
    )
    with pytest.raises(TraceError, match=r"0\.txt:1: EndTime: 'soon' is not a time"):
        read("ReservationName=x Nodes=n1 StartTime=2024-01-01T00:00:00 EndTime=soon\n", start="2024-01-01T00:00:00")
    assert "start: 'soon' is not a time; write it as 2025-01-01T00:00:00" in refusal(lambda: read(CONF, start="soon"))


CORES = """\
ReservationName=half StartTime=2024-01-02T00:00:00 EndTime=2024-01-03T00:00:00 Duration=1-00:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=3 Features=(null) PartitionName=(null) Flags=SPEC_NODES
     NodeName=n1 CoreIDs=0,2
     NodeName=n2 CoreIDs=3
   TRES=cpu=6
   Users=ann,eve Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)

ReservationName=all StartTime=2024-01-05T00:00:00 EndTime=2024-01-06T00:00:00 Nodes=n3 Users=bob Licenses=big:2
"""


@pytest.mark.parametrize("on_one_line", [False, True])
@pytest.mark.parametrize(
    ("unit", "half", "others"),
    [("nodes", "0-1", "2"), ("cores", "0-1,4-5,14-15", "16-23"), ("gpus", "0-3", "4-5")],
)
def test_inner_lines_of_reservations_name_cores(read: Read, on_one_line: bool, unit: str, half: str, others: str) -> None:
    conf = "NodeName=n[1-3] CPUs=8 Sockets=1 CoresPerSocket=4 ThreadsPerCore=2 Gres=gpu:2\n"
    text = "\n".join(" ".join(record.split()) for record in CORES.split("\n\n")) if on_one_line else CORES
    slurm = read(conf, text, unit=unit, start="2024-01-01T00:00:00")
    first, second = slurm.site.reservations
    assert (first.nodes, first.users, second.nodes, second.users) == (half, ("ann", "eve"), others, ("bob",))
    whole = (
        f"CoreIDs of reservation half: the model counts {unit}: the whole nodes are reserved; --unit cores reserves these cores"
    )
    licenses = "Licenses of reservation all: licenses are no rule of the model"
    assert slurm.left_out == ((licenses,) if unit == "cores" else (whole, licenses))
    with pytest.raises(TraceError, match=r"1\.txt:1: CoreIDs: '0-x' are no numbers of cores"):
        read(conf, CORES.replace("0,2", "0-x"), unit=unit, start="2024-01-01T00:00:00")


def test_older_names_are_read(read: Read) -> None:
    old = "NodeName=DEFAULT Procs=12\nNodeName=n[1-2]\nPartitionName=a Nodes=n1 Priority=3 Shared=FORCE:2\n"
    old += "PartitionName=b Nodes=n2\n"
    new = (
        old.replace("Procs", "CPUs")
        .replace("Priority=3", "PriorityTier=3 PriorityJobFactor=3")
        .replace("Shared", "OverSubscribe")
    )
    weights = "PriorityWeightPartition=10\n"
    for unit in ("nodes", "cores"):
        before, after = (read(text + weights, unit=unit) for text in (old, new))
        assert before.site == after.site
        assert before.nodes == after.nodes
        assert before.left_out == tuple(line.replace("OverSubscribe", "Shared") for line in after.left_out)
    assert [each.priority for each in read(old).site.partitions] == [3, 1]
    with pytest.raises(TraceError, match="Priority: 'high' is not a whole number"):
        read(old.replace("Priority=3", "Priority=high"))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("GrpNodes=8", "GrpTRES=node=8"), ("GrpCPUs=8", "GrpTRES=cpu=8"), ("GrpCPURunMins=600", "GrpTRESRunMins=cpu=600"),
        ("MaxNodes=8", "MaxTRES=node=8"), ("MaxNodesPerJob=8", "MaxTRESPerJob=node=8"), ("MaxCPUs=8", "MaxTRES=cpu=8"),
        ("MaxNodesPU=8", "MaxTRESPU=node=8"), ("MaxNodesPerUser=8", "MaxTRESPerUser=node=8"),
        ("MaxCPUsPU=8", "MaxTRESPU=cpu=8"), ("MaxCPUsPA=8", "MaxTRESPA=cpu=8"),
        ("MaxCPURunMinsPerUser=600", "MaxTRESRunMinsPerUser=cpu=600"),
        ("MaxCPURunMinsPU=600", "MaxTRESRunMinsPU=cpu=600"), ("MaxWallDurationPerJob=60", "MaxWall=60"),
        ("GrpSubmitJobs=5", "GrpSubmit=5"), ("MaxSubmitJobsPU=5", "MaxSubmitPU=5"), ("MaxJobsPerAccount=5", "MaxJobsPA=5"),
        ("MaxTRESPJ=node=8", "MaxTRES=node=8"), ("MaxNodes=1", "MaxTRES=node=1"),
    ],
)  # fmt: skip
def test_older_columns_of_qos_are_limits(read: Read, older: str, newer: str) -> None:
    for unit in ("nodes", "cores"):
        before, after = (read("Name|{}\nx|{}\n".format(*setting.split("=", 1)), unit=unit) for setting in (older, newer))
        assert before.site == after.site
        assert len(before.left_out) == len(after.left_out) == (not before.site.limits)
    assert read(f"Name|{older.partition('=')[0]}\nx|\n").site == Site()


@pytest.mark.parametrize(
    ("flag", "qos_fields", "left_out"),
    [
        ("DenyOnLimit", {}, None),
        ("OverPartQOS", {"over_partition_qos": True}, None),
        ("PartitionTimeLimit", {"lifts_partition_time": True}, None),
        ("PartitionMaxNodes", {"lifts_partition_nodes": True}, None),
        ("PartitionMinNodes", {}, "least sizes are no rule of the model: smaller jobs run too"),
        ("EnforceUsageThreshold", {}, "jobs below the threshold are not held"),
        ("NoDecay", {}, "budgets that are used up are no rule of the model, so that nothing has to decay"),
        (
            "NoReserve",
            {},
            "the policy decides which jobs hold reservations: those of the QOS may, and others then wait for them",
        ),
        ("RequiresReservation", {}, "jobs of the QOS run outside reservations too"),
        ("UsageFactorSafe", {}, "budgets that are used up are no rule of the model, so that no job is held for them"),
        ("NewFlag", {}, "it is no rule of the model"),
    ],
)
def test_flags_of_qos(read: Read, flag: str, qos_fields: dict[str, Any], left_out: str | None) -> None:
    slurm = read(qos({"Name": "x", "Flags": flag, "MaxJobsPU": "2"}))
    assert list(slurm.site.limits) == [Limits(user="*", qos="x", running_jobs=2)]
    assert list(slurm.site.qos) == ([QOS(name="x", **qos_fields)] if qos_fields else [])
    assert slurm.left_out == (() if left_out is None else (f"Flags={flag} of QOS x: {left_out}",))


def test_relative_limits_are_parts_of_the_machine_or_of_the_partition(read: Read) -> None:
    conf = "NodeName=n[1-10] CPUs=4\nPartitionName=all Nodes=ALL Default=YES\nPartitionName=half Nodes=n[1-5] QoS=part\n"
    row = {"Flags": "Relative", "GrpTRES": "node=50,cpu=25", "MaxTRESPU": "node=20", "GrpTRESRunMins": "node=60"}
    table_of_qos = qos({"Name": "part", **row}, {"Name": "any", **row})
    assert list(read(conf, table_of_qos).site.limits) == [
        Limits(qos="part", nodes=2, node_hours=1),
        Limits(user="*", qos="part", nodes=1),
        Limits(qos="any", nodes=5, node_hours=1),
        Limits(user="*", qos="any", nodes=2),
    ]
    assert read(conf, table_of_qos, unit="cores").site.limits == (Limits(qos="part", nodes=5), Limits(qos="any", nodes=10))
    unknown = read(table_of_qos)
    assert list(unknown.site.limits) == [Limits(qos="part", node_hours=1), Limits(qos="any", node_hours=1)]
    assert "GrpTRES=node of QOS part, any: it is a part of the machine, of which no file tells the nodes" in unknown.left_out


def test_limits_of_associations_yield_to_limits_of_qos_of_the_same_kind(read: Read) -> None:
    rows = {"Account": "bio", "User": "ann", "MaxJobs": "2", "GrpJobs": "3", "MaxWall": "60", "MaxSubmit": "5"}
    slurm = read(qos({"Name": "x", "MaxJobsPA": "4", "MaxWall": "30", "GrpJobs": "9"}), associations(rows))
    assert list(slurm.site.limits)[2:] == [
        Limits(account="bio", user="ann", running_jobs=3, yields_to_qos="grp"),
        Limits(account="bio", user="*", running_jobs=2, wall_time_s=3600, yields_to_qos="max"),
        Limits(account="bio", user="*", submitted_jobs=5),
    ]
    alone = read(associations(rows, {"Account": "bio", "User": "bob", "MaxJobs": "9"}))
    assert Limits(account="bio", user="ann", running_jobs=2, wall_time_s=3600, submitted_jobs=5) in alone.site.limits


def test_users_may_share_the_usage_of_one_account_only(read: Read) -> None:
    rows = [
        {"Account": "root"},
        {"Account": " bio", "Share": "3"},
        {"Account": "  bio", "User": "ann", "Share": "parent"},
        {"Account": "  lab", "Share": "parent"},
        {"Account": " chem"},
        {"Account": "  chem", "User": "ann", "Share": "2"},
        {"Account": "  chem", "User": "bob", "Share": "0"},
    ]
    slurm = read("PriorityWeightFairshare=1\n", associations(*rows))
    assert slurm.site.order == FairShare(
        account_shares={"bio": 3, "bio/lab": "parent"}, user_shares={"bio/ann": "parent", "chem/ann": 2}
    )
    assert slurm.left_out == ("Share=0 of user bob: shares are numbers above 0",)


def test_every_column_is_read_or_left_out_for_a_reason(read: Read) -> None:
    """Columns of sacctmgr of Slurm 14 to 24, and the reasons that are not those of what is unknown."""
    columns = """
        GraceTime Preempt PreemptExemptTime PreemptMode UsageThres UsageFactor LimitFactor GrpTRES GrpTRESMins GrpTRESRunMins
        GrpJobs GrpSubmit GrpWall GrpJobsAccrue MaxTRES MaxTRESPerNode MaxTRESMins MaxWall MaxTRESPU MaxJobsPU MaxSubmitPU
        MaxTRESPA MaxTRESRunMinsPA MaxTRESRunMinsPU MaxJobsPA MaxSubmitPA MinTRES MaxJobsAccruePU MaxJobsAccruePA MinPrioThresh
        GrpCPUs GrpCPUMins GrpCPURunMins GrpMem GrpNodes MaxCPUs MaxCPUMins MaxNodes MaxCPUsPU MaxNodesPU MinCPUs
    """
    for column in columns.split():
        value = "60" if "TRES" not in column else "mem=60"
        slurm = read(f"Name|{column}\nx|{value}\n")
        assert not any(line.endswith("it is no rule of the model") for line in slurm.left_out), column
        assert bool(slurm.left_out) != bool(slurm.site.limits), column


# The cases of ../shared/cases/sites.


def test_shared_case_d14_has_windows_on_weekdays_for_all_but_bob() -> None:
    nodes = site_case("d13_new_priority.conf")
    slurm = read_slurm_site(nodes, site_case("d14_reservations.txt"), start="2026-03-02T00:00:00")
    office = [each for each in slurm.site.reservations if each.name == "office"]
    assert [(each.start_s, each.end_s, each.every_s) for each in office] == [
        (day * 86_400 + 8 * 3600, day * 86_400 + 12 * 3600, 604_800) for day in range(5)
    ]
    assert {(each.nodes, each.users) for each in office} == {("2", ("-bob",))}
    assert [office[0].admits(None, user) for user in ("bob", "ann", None)] == [False, True, True]


def test_shared_case_d14b_keeps_its_users() -> None:
    nodes, lines = site_case("d13_new_priority.conf"), site_case("d14b_core_lines.txt")
    for unit, reserved in (("nodes", "3"), ("cores", "24-27")):
        (half,) = read_slurm_site(nodes, lines, unit=unit, start="2026-03-02T00:00:00").site.reservations
        assert (half.nodes, half.users) == (reserved, ("ann", "eve"))


def test_shared_case_d13_has_the_same_priorities_by_their_older_name() -> None:
    old, new = (read_slurm_site(site_case(f"d13_{age}_priority.conf")) for age in ("old", "new"))
    assert (old.site, old.left_out) == (new.site, new.left_out)
    workload = Workload.from_frame(pd.read_csv(site_case("d13_jobs.csv")))
    result = Scenario(workload=workload, machine=Machine(nodes=4), policy="easy", site=old.site).run()
    assert result.jobs["start_s"][2] == 1000


def test_shared_cases_d20_and_d21_by_older_names() -> None:
    assert list(read_slurm_site(site_case("d20_old_qos_columns.txt")).site.limits) == [
        Limits(qos="old", nodes=8, running_jobs=20, job_nodes=4, wall_time_s=86_400),
        Limits(user="*", qos="old", nodes=2, running_jobs=3, submitted_jobs=9),
    ]
    assert list(read_slurm_site(site_case("d20_old_qos_columns.txt"), unit="cores").site.limits) == [
        Limits(qos="old", nodes=64, running_jobs=20, node_hours=100, wall_time_s=86_400),
        Limits(user="*", qos="old", nodes=32, running_jobs=3, submitted_jobs=9),
    ]
    assert read_slurm_site(site_case("d21_legacy.conf"), unit="cores").nodes == 24


def test_shared_case_d18_has_users_that_share() -> None:
    slurm = read_slurm_site(site_case("d18_fair.conf"), site_case("d18_assoc_parent.txt"))
    shares = {"account_shares": {"chem": 60, "phys": 40}, "user_shares": {"ann": "parent", "bob": "parent"}}
    assert slurm.site.order == FairShare(**shares)  # type: ignore[arg-type]
    assert slurm.left_out == ()


def test_scontrol_show_config(read: Read) -> None:
    text = """\
Configuration data as of 2024-05-01T10:00:00
AccountingStorageEnforce = associations,limits
ClusterName             = tor
PriorityDecayHalfLife   = 7-00:00:00
PriorityType            = priority/multifactor
PriorityWeightAge       = 0
PriorityWeightFairShare = 100
SLURM_CONF              = /etc/slurm/slurm.conf

Cgroup Support Configuration:
Slurmctld(primary) at head is UP
"""
    assert read(text).site == Site(order="fair-share")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "0.txt: expected are a slurm.conf, scontrol show partition, node or config, or sacctmgr show qos -P or show assoc "
             "-P; the file is empty"),
        ("; MaxProcs: 4\n1 2 3\n", "0.txt: expected are a slurm.conf, .*'; MaxProcs: 4' begins none of them"),
        ("ClusterName=a\nhello there\n", "0.txt:2: 'hello there' is not KEY=VALUE"),
        ("NodeName=n[1-\n", r"0.txt:1: the list of nodes 'n\[1-' cannot be read"),
        ("PartitionName=a Nodes=n1 MaxTime=soon\n", "0.txt:1: MaxTime: 'soon' is not a duration"),
        ("PartitionName=a Nodes=n1\nPartitionName=b Nodes=n1 MaxNodes=two\n", "0.txt:2: MaxNodes: 'two' is not a whole number"),
        (f"{QOS_HEADER}\nhigh|1\n", "0.txt:2: 2 fields; the header line has 28"),
        (qos({"Name": "x", "MaxJobsPU": "many"}), "0.txt:2: MaxJobsPU: 'many' is not a whole number"),
        (qos({"Name": "x", "GrpTRES": "node=many"}), "0.txt:2: GrpTRES: 'many' is not a whole number"),
        (qos({"Name": "x", "MaxWall": "x"}), "0.txt:2: MaxWall: 'x' is not a duration"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(read: Read, tmp_path: Path, text: str, line: str) -> None:
    with pytest.raises(TraceError, match=line) as refused:
        read(text)
    assert str(refused.value).startswith(f"{tmp_path}/0.txt:")
    assert "\n" not in str(refused.value)


def test_units_that_are_refused(read: Read) -> None:
    assert "unit: 'sockets' is not allowed" in refusal(lambda: read(CONF, unit="sockets"))
    assert "for the number of cores of n1" in refusal(lambda: read("PartitionName=a Nodes=n[1-2]\n", unit="cores"))


def test_the_command_writes_a_file_that_runs_take(command_line: Command, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("slurm.conf", "qos.txt", "assoc.txt")]
    for path, text in zip(files, (CONF, qos(HIGH, GPU), TREE), strict=True):
        path.write_text(text)
    target = tmp_path / "site.toml"
    written = command_line("site", *files, "-o", target)
    assert (written.code, written.out) == (0, "")
    assert "machine: 67 nodes (--nodes 67)\n" in written.err
    assert "left out: SchedulerType: how the queue is worked off is the policy's (--policy)\n" in written.err
    assert Site.from_toml(target) == read_slurm_site(*files).site
    assert command_line("site", *files).out == target.read_text()
    jobs = ("--trace", tmp_path / "jobs.csv", "--columns", "submit_s=s,run_s=r,nodes=n,partition=p,user_name=u")
    (tmp_path / "jobs.csv").write_text("s,r,n,p,u\n0,100,2,debug,ann\n1,50,2,gpu,bob\n2,50,1,gpu,bob\n")
    run = command_line("run", *jobs, "--site", target, "--nodes", 67, "--policy", "easy", "--json")
    assert run.code == 0, run.err
    assert json.loads(run.out)[0]["mean_wait_s"] == pytest.approx(49 / 3)  # a job at a time of bob in the partition gpu
    refused = command_line("site", tmp_path / "jobs.csv")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
