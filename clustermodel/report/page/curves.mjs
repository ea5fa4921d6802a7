// Draws a measure against a factor or the utilization, a curve for each level of another factor, with the 95 % interval as a
// band, or as whiskers for single points.

const data = JSON.parse(document.getElementById("study-data").textContent)
const element = (name) => document.getElementById(`curves-${name}`)
let listening = false

// The points at which all held factors have the chosen levels.
const pointsAt = (held) =>
  [...data.codes.keys()].filter((point) => held.every((at) => String(data.codes[point][at]) === element(`at-${at}`).value))

const stretch = (range, start, end) => range.setv({start, end, reset_start: start, reset_end: end})

// The ends of a horizontal axis: numbers with a margin, or half a place beside names.
const ends = (places, numeric) => {
  const [low, high] = [Math.min(...places), Math.max(...places)]
  const margin = numeric ? Math.max((high - low) * 0.05, high === low ? Math.abs(high) * 0.05 || 0.5 : 0) : 0.5
  return [low - margin, high + margin]
}

// The factor in whose order a curve against utilization goes through its points: a numeric one, or the last; -1 for none.
const alongUtilization = (by) => {
  const others = [...data.factors.keys()].filter((at) => at !== by)
  return others.findLast((at) => data.factors[at].numeric) ?? others.at(-1) ?? -1
}

const label = (point) => data.factors.map((factor, at) => `${factor.title}: ${factor.labels[data.codes[point][at]]}`).join(", ")

export default (args) => {
  if (!listening) {
    listening = true
    const draw = () => show(args)
    for (const select of document.querySelectorAll('select[id^="curves-"]')) select.addEventListener("change", draw)
    if (innerWidth < 600) legendsBelow(Object.values(args.plots), args.legends)
  }
  show(args)
}

// On a narrow screen a legend beside a plot leaves no width for the curves.
const legendsBelow = (plots, legends) =>
  plots.forEach((plot, at) => {
    const legend = legends[at]
    plot.setv({right: plot.right.filter((model) => model !== legend), below: [...plot.below, legend]})
  })

const show = ({slots, scales, plots, legends}) => {
  const {factors} = data
  // A legend draws all its items again whenever anything changes to which one of them refers; it has none meanwhile.
  const items = legends.map((legend) => legend.items)
  for (const legend of legends) legend.items = []
  const x = element("x").value
  const by = Number(element("by").value)
  const scale = element("scale").value
  const measure = data.measures[element("measure").value]
  // Along a curve one factor varies; against utilization the first one that has no colours, and points follow its order.
  const along = x === "utilization" ? alongUtilization(by) : Number(x)
  const held = [...factors.keys()].filter((at) => at !== along && at !== by && element(`at-${at}`))
  for (const at of factors.keys()) if (element(`at-${at}`)) element(`at-${at}`).disabled = !held.includes(at)
  const place = (point) => (x === "utilization" ? data.measures.utilization.mean[point] : factors[along].places[data.codes[point][along]])
  const there = pointsAt(held).filter((point) => measure.mean[point] !== null && Number.isFinite(place(point)))
  let [low, high, least] = [Infinity, -Infinity, Infinity]  // the least one above zero
  slots.forEach((slot, level) => {
    const used = by >= 0 ? level < factors[by].labels.length : level === 0
    const points = used ? there.filter((point) => by < 0 || data.codes[point][by] === level) : []
    points.sort((one, other) => (along < 0 ? 0 : factors[along].places[data.codes[one][along]] - factors[along].places[data.codes[other][along]]))
    const mean = points.map((point) => measure.mean[point])
    const half = points.map((point) => measure.half[point] ?? NaN)
    const lowest = scale === "logarithmic" ? (value) => value / 100 : () => -Infinity  // which has no zero
    const lower = mean.map((value, i) => Math.max(value - (half[i] || 0), lowest(value)))
    const upper = mean.map((value, i) => value + (half[i] || 0))
    if (slot.renderers[scale][0].visible) {
      low = Math.min(low, ...lower)
      high = Math.max(high, ...upper)
      least = Math.min(least, ...mean.filter((value) => value > 0))
    }
    const places = points.map(place)
    slot.source.data = {
      x: places, y: mean, low: lower, high: upper, half, point: points.map(label), runs: points.map((point) => data.runs[point]),
    }
    const alone = points.length === 1 ? [0] : []
    slot.spread.data = {x: alone.map((i) => places[i]), low: alone.map((i) => lower[i]), high: alone.map((i) => upper[i])}
    const style = used && by >= 0 ? factors[by].styles[level] : {colour: "#0072B2", dash: "solid", marker: "circle"}
    for (const look of slot.looks) {
      if ("line_color" in look.properties) look.line_color = style.colour
      if ("fill_color" in look.properties) look.fill_color = style.colour
    }
    for (const line of slot.lines) line.line_dash = style.dash
    for (const points of slot.points) points.marker = {value: style.marker}
    for (const item of slot.items) {
      item.label = {value: used && by >= 0 ? factors[by].literal[level] : ""}
      item.visible = used && by >= 0
    }
  })
  const numeric = x === "utilization" || factors[along].numeric
  const places = x === "utilization" ? data.measures.utilization.mean.filter(Number.isFinite) : factors[along].places
  const [start, end] = ends(places.length ? places : [0, 1], numeric)
  const positive = there.every((point) => measure.mean[point] >= 0)  // bands may reach below zero, where there is nothing to see
  const margin = (high - (positive ? Math.max(low, 0) : low) || Math.abs(high) || 1) * 0.06
  for (const [name, plot] of Object.entries(plots)) {
    plot.visible = name === scale
    const [below, left] = [plot.below[0], plot.left[0]]
    below.axis_label = x === "utilization" ? data.measures.utilization.title : factors[along].title
    left.axis_label = measure.title
    Object.assign(below, scales[x === "utilization" ? factors.length : along])
    stretch(plot.x_range, start, end)
    if (name === "logarithmic" && Number.isFinite(least)) stretch(plot.y_range, least / 1.5, high * 1.5)
    if (name === "linear" && Number.isFinite(low)) stretch(plot.y_range, positive ? Math.max(low - margin, -margin / 2) : low - margin, high + margin)
  }
  legends.forEach((legend, at) => (legend.items = items[at]))
}
