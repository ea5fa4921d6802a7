"""The order of the queue that settings of Slurm describe."""

from __future__ import annotations

from clustermodel.logs.slurm.associations import shares_of
from clustermodel.logs.slurm.configuration import Configuration
from clustermodel.site.order import WEIGHTS, FairShare, Multifactor
from clustermodel.validation import LONGEST_S


def order_of(slurm: Configuration) -> FairShare | Multifactor | None:
    """Return the order of the priorities; alone, fair shares are Slurm's Fair Tree."""
    record = next((record for name, record in slurm.settings.items() if name.startswith("priorityweight")), None)
    kind = slurm.setting("prioritytype", "priority/multifactor")
    shares = shares_of(slurm)
    if record is None or kind.endswith("basic"):
        if any(shares.values()):
            why = "they count where PriorityType is priority/multifactor and has weights (slurm.conf, scontrol show config)"
            slurm.leave("Share", why, "associations")
        return None
    weights = {name: float(slurm.weight(f"priorityweight{name}")) for name in ("age", "fairshare", "partition", "qos")}
    weights["fair_share"], weights["queue"] = weights.pop("fairshare"), 0.0
    small = slurm.setting("priorityfavorsmall", "no").lower() == "yes"
    weights["size"] = 0.0 if small else float(slurm.weight("priorityweightjobsize"))
    given = [name for name in WEIGHTS if weights[name]]
    settings = {name: slurm.settings.get(name) for name in ("prioritydecayhalflife", "prioritymaxage")}
    half_life, most_age = (
        7 * 86_400.0 if value is None else slurm.duration(value, name) or LONGEST_S for name, value in settings.items()
    )
    if not given:
        return None
    if given == ["fair_share"] and "NO_FAIR_TREE" not in slurm.setting("priorityflags", "").upper():
        return FairShare(half_life_s=half_life, **shares)
    if "fair_share" in given:
        slurm.leave("PriorityWeightFairshare", "beside other weights it is the classic factor, not Fair Tree's rank", "")
    partitions, qos = slurm.records["partition"], slurm.records["qos"]
    factors = {
        "partitions": {name: slurm.whole(each, "priorityjobfactor", 1) for name, each in partitions.items()},
        "qos_values": {name: slurm.whole(each, "priority", 0) for name, each in qos.items()},
    }
    values = {
        kind: {name: value / max(each.values()) for name, value in each.items() if value > 0}
        for kind, each in factors.items()
        if weights["partition" if kind == "partitions" else "qos"]
    }
    return Multifactor(max_age_s=most_age, half_life_s=half_life, **weights, **shares, **values)  # type: ignore[arg-type]
