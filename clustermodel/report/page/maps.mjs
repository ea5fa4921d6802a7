// A heat map over two factors: means, or paired differences from a baseline; those that are not significant are hatched.

const data = JSON.parse(document.getElementById("study-data").textContent)
const colours = JSON.parse(document.getElementById("map-colours").textContent)
const place = document.getElementById("maps-table")
const element = (name) => document.getElementById(`maps-${name}`)

const made = (name, text, attributes = {}) => {
  const one = document.createElement(name)
  one.textContent = text
  for (const [key, value] of Object.entries(attributes)) if (value !== "") one.setAttribute(key, value)
  return one
}

const contrast = (colour) => {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16))
  return 0.3 * red + 0.59 * green + 0.11 * blue < 128 ? "#ffffff" : "#000000"
}

const write = (value) => (Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3)).toLocaleString("en", {maximumFractionDigits: 6}))
const signed = (value) => `${value > 0 ? "+" : ""}${(100 * value).toFixed(1)}\u00a0%`

// The levels of a factor in the order of an axis: numbers ascend.
const levels = ({labels, places}) => [...labels.keys()].sort((one, other) => places[one] - places[other])

// What a point shows: a number, its text, and whether it is significant; null for nothing.
const shownAt = (name, baseline) => {
  if (baseline === "") {
    const {mean, half} = data.measures[name]
    return (point) => (mean[point] === null ? null : {value: mean[point], text: write(mean[point]), note: half[point] === null ? "" : `± ${write(half[point])}`, tied: false})
  }
  const {points, measures} = data.differences[data.lead][Number(baseline)]
  const {relative, half, difference, significant} = measures[name]
  return (point) => {
    const at = points.indexOf(point)
    if (at < 0 || relative[at] === null) return null
    const note = half[at] === null ? "" : `${write(difference[at])} ± ${write(half[at])}`
    return {value: relative[at], text: signed(relative[at]), note, tied: !significant[at]}
  }
}

// The colour of a value.
const colourOf = (values, baseline) => {
  const scale = colours[baseline === "" ? "means" : "differences"]
  const largest = Math.max(...values.map(Math.abs)) || 1
  const [low, high] = baseline === "" ? [Math.min(...values), Math.max(...values)] : [-largest, largest]
  return (value) => scale[Math.round(((value - low) / (high - low || 1)) * (scale.length - 1))]
}

// The points of the map by their levels of both factors.
const pointsOf = (x, y, held) => {
  const found = new Map()
  data.codes.forEach((codes, point) => {
    if (held.every((at) => String(codes[at]) === element(`at-${at}`).value)) found.set(`${codes[x]} ${codes[y]}`, point)
  })
  return found
}

const offerMeasures = (baseline) => {
  for (const option of element("measure").options) option.disabled = baseline !== "" && !data.shown.includes(option.value)
  if (element("measure").selectedOptions[0].disabled) element("measure").value = data.shown[0]
}

const show = () => {
  const [x, y] = ["x", "y"].map((axis) => Number(element(axis).value))
  const baseline = element("show").value
  offerMeasures(baseline)
  const held = [...data.factors.keys()].filter((at) => at !== x && at !== y && element(`at-${at}`))
  for (const at of data.factors.keys()) if (element(`at-${at}`)) element(`at-${at}`).disabled = !held.includes(at)
  if (x === y) {
    place.replaceChildren(made("p", "Choose two different factors."))
    return
  }
  const name = element("measure").value
  const points = pointsOf(x, y, held)
  const shown = shownAt(name, baseline)
  const cells = new Map([...points].map(([key, point]) => [key, shown(point)]).filter(([, cell]) => cell !== null))
  const colour = colourOf([...cells.values()].map(({value}) => value), baseline)
  const [across, down] = [data.factors[x], data.factors[y]]
  const table = made("table", "", {class: "data map", "data-name": `map of ${name}`})
  const head = table.createTHead().insertRow()
  head.append(made("th", `${down.title} \\ ${across.title}`, {"data-name": down.name}))
  head.append(...levels(across).map((level) => made("th", across.labels[level], {"data-name": across.labels[level], class: "number"})))
  const body = table.createTBody()
  const rows = levels(down)
  for (const level of down.numeric ? rows.reverse() : rows) {
    const row = body.insertRow()
    row.append(made("td", down.labels[level]))
    for (const other of levels(across)) {
      const cell = cells.get(`${other} ${level}`)
      if (!cell) {
        row.append(made("td", "-", {class: "cell"}))
        continue
      }
      const one = made("td", cell.text, {class: `cell${cell.tied ? " tied" : ""}`, "data-v": String(cell.value), title: cell.note})
      one.style.backgroundColor = colour(cell.value)
      one.style.color = contrast(colour(cell.value))
      row.append(one)
    }
  }
  place.replaceChildren(table)
}

if (place) {
  for (const select of document.querySelectorAll('select[id^="maps-"]')) select.addEventListener("change", show)
  show()
}
