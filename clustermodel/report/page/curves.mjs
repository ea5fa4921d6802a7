// Draws a metric against a factor, a line for each policy, with the 95 % interval as a band, or as whiskers for single points.

export default ({points, lines, choose, plots, scales, labels}) => {
  const all = points.data
  const x = choose.x.value
  const y = choose.y.value
  // Along a curve a factor changes; against utilization it is the workload, if there are several, and points follow its order.
  const factors = ["workload", "machine"].filter((factor) => factor in choose)
  const free = x === "utilization" ? factors[0] ?? "policy" : x
  const held = factors.filter((factor) => factor !== free)
  for (const factor of factors) choose[factor].disabled = factor === free
  let [low, high] = [Infinity, -Infinity]
  let least = Infinity  // above zero
  for (const {policy, source, spread, drawn} of lines) {
    const here = []
    for (let i = 0; i < all.policy.length; i++) {
      const wanted = all.policy[i] === policy && held.every((factor) => all[factor][i] === choose[factor].value)
      if (wanted && Number.isFinite(all[y][i])) here.push(i)
    }
    here.sort((one, other) => all[`at ${free}`][one] - all[`at ${free}`][other])
    const pick = (column) => here.map((i) => all[column][i])
    const mean = pick(y)
    const half = pick(`${y} half`)
    const lowest = choose.scale.value === "logarithmic" ? (value) => value / 100 : () => -Infinity  // which has no zero
    const lower = mean.map((value, i) => Math.max(value - (Number.isFinite(half[i]) ? half[i] : 0), lowest(value)))
    const upper = mean.map((value, i) => value + (Number.isFinite(half[i]) ? half[i] : 0))
    if (drawn[choose.scale.value].visible) {
      low = Math.min(low, ...lower)
      high = Math.max(high, ...upper)
      least = Math.min(least, ...mean.filter((value) => value > 0))
    }
    const places = pick(`at ${x}`)
    source.data = {
      x: places, y: mean, low: lower, high: upper, half,
      machine: pick("machine"), workload: pick("workload"), policy: pick("policy"), runs: pick("runs"),
    }
    const alone = here.length === 1 ? [0] : []
    spread.data = {x: alone.map((i) => places[i]), low: alone.map((i) => lower[i]), high: alone.map((i) => upper[i])}
  }
  const stretch = (range, start, end) => range.setv({start, end, reset_start: start, reset_end: end})
  const margin = (high - low || Math.abs(high) || 1) * 0.06
  for (const [scale, {plot, x_axis, y_axis}] of Object.entries(plots)) {
    plot.visible = scale === choose.scale.value
    x_axis.axis_label = labels[x]
    y_axis.axis_label = labels[y]
    x_axis.ticker = scales[x].ticker
    x_axis.formatter = scales[x].formatter
    stretch(plot.x_range, scales[x].start, scales[x].end)
    if (scale === "logarithmic" && Number.isFinite(least)) stretch(plot.y_range, least / 1.5, high * 1.5)
    if (scale === "linear" && Number.isFinite(low)) stretch(plot.y_range, low - margin, high + margin)
  }
}
