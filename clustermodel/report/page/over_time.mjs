// Shows the curves over time of the runs of one machine, workload and replication: a line for each policy.

export default ({group, lines, curves, range}) => {
  const shown = curves[group.value]
  for (const {policy, busy, waiting} of lines) {
    const of = shown.policies[policy]
    busy.data = of ? {x: shown.time, y: of.busy} : {x: [], y: []}
    waiting.data = of ? {x: shown.time, y: of.waiting} : {x: [], y: []}
  }
  range.setv({start: 0, end: shown.time.at(-1)})
}
