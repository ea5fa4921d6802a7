"""Accounts and users of Slurm: which account stands above which, and their shares."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from clustermodel.logs.slurm.configuration import Configuration
from clustermodel.site.order import PARENT, Share

_USE_PARENT: Final = "2147483647"  # what older releases print for FairShare=parent


def choose_cluster(slurm: Configuration) -> None:
    """Leave out the associations of clusters but that of ``ClusterName``, or the first one."""
    clusters = [record.fields.get("cluster", "").strip() for record in slurm.associations]
    names = dict.fromkeys(filter(None, clusters))
    chosen = slurm.setting("clustername", "")
    chosen = chosen if chosen in names else next(iter(names), "")
    for name in names:
        if name != chosen:
            slurm.leave("associations", f"the site is that of cluster {chosen}", f"cluster {name}")
    kept = zip(clusters, slurm.associations, strict=True)
    slurm.associations = [record for cluster, record in kept if cluster in ("", chosen)]


def parents_of(slurm: Configuration) -> dict[str, str]:
    """Return the account above each account: its column ``ParentName``, or the next one that ``tree`` indents less."""
    parents: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for record in slurm.associations:
        if record.fields.get("user", "").strip():
            continue
        text = record.fields["account"]
        account, depth = text.strip(), len(text) - len(text.lstrip())
        named = record.fields.get("parentname", record.fields.get("parent", "")).strip()
        while above and above[-1][0] >= depth:
            above.pop()
        if named or above:
            parents[account] = named or above[-1][1]
        if depth or account == "root":
            above.append((depth, account))
    return parents


def shares_of(slurm: Configuration) -> dict[str, dict[str, Share]]:
    """Return the shares of accounts, each by its path from the top, and of users, that are not 1."""
    parents, of_users = parents_of(slurm), defaultdict[str, dict[str, Share]](dict)
    accounts: dict[str, Share] = {}
    for record in slurm.associations:
        account, user = (record.fields.get(name, "").strip() for name in ("account", "user"))
        text = record.fields.get("share", record.fields.get("fairshare", "")).strip()
        if account == "root" or not text:
            continue
        share: Share = PARENT if text.lower() == PARENT or text == _USE_PARENT else float(text) if text.isdecimal() else 0.0
        if not share:
            slurm.leave(f"Share={text}", "shares are numbers above 0", f"user {user}" if user else f"account {account}")
        elif user:
            of_users[user][account] = share
        else:
            path = [account]
            while (above := parents.get(path[0], "root")) != "root" and above not in path:
                path.insert(0, above)
            if len(path) > 1 or share != 1:
                accounts["/".join(path)] = share
    users: dict[str, Share] = {}
    for user, shares in of_users.items():
        if len({*shares.values()}) > 1:
            users |= {f"{account}/{user}": share for account, share in shares.items() if share != 1}
        elif (share := next(iter(shares.values()))) != 1:
            users[user] = share
    return {"account_shares": accounts, "user_shares": users}
