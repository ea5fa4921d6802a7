// The table of paired differences from a baseline, which readers choose.

const data = JSON.parse(document.getElementById("study-data").textContent)
const place = document.getElementById("differences-table")
const factorSelect = document.getElementById("differences-factor")
const baselineSelect = document.getElementById("differences-baseline")

const made = (name, text, attributes = {}) => {
  const element = document.createElement(name)
  element.textContent = text
  for (const [key, value] of Object.entries(attributes)) if (value !== "") element.setAttribute(key, value)
  return element
}

// How the numbers of a column are written: about four significant digits of the largest.
const writer = (values) => {
  const largest = Math.max(0, ...values.filter((value) => value !== null).map(Math.abs))
  const whole = values.every((value) => value === null || Number.isInteger(value))
  const digits = whole || largest >= 10_000 ? 0 : largest >= 100 ? 1 : largest >= 10 ? 2 : 4
  return (value) => (value === null ? "-" : value.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits}))
}

const heading = (name, title, numeric) => {
  const cell = made("th", "", {"data-name": name, class: numeric ? "number" : ""})
  cell.append(made("button", title, {type: "button"}))
  return cell
}

const number = (value, text, style = "") => made("td", text, {"data-v": value === null ? "" : String(value), class: `number ${style}`})

// The cells of a measure at all points: difference, half-width, relative difference, significance.
const cellsOf = ({difference, half, relative, significant}) => {
  const [writeDifference, writeHalf] = [writer(difference), writer(half)]
  return difference.map((value, i) => {
    const style = !significant[i] ? "" : value < 0 ? "lower" : "higher"
    const mark = !significant[i] ? "" : value < 0 ? "▼" : "▲"
    const share = relative[i] === null ? "-" : `${relative[i] > 0 ? "+" : ""}${(100 * relative[i]).toFixed(1)}\u00a0%`
    return [
      number(value, writeDifference(value), style), number(half[i], writeHalf(half[i]), "half"), number(relative[i], share, style),
      made("td", mark, {"data-v": String(significant[i]), class: style}),
    ]
  })
}

const show = () => {
  const factor = Number(factorSelect.value)
  const {points, measures} = data.differences[factor][Number(baselineSelect.value)]
  const table = made("table", "", {class: "data", "data-name": `differences from ${data.factors[factor].labels[Number(baselineSelect.value)]}`})
  const head = table.createTHead().insertRow()
  head.append(...data.factors.map(({name, title, numeric}) => heading(name, title, numeric)))
  for (const name of data.shown) {
    head.append(
      heading(`${name}_difference`, data.measures[name].title, true), heading(`${name}_half`, "±", true),
      heading(`${name}_relative`, "%", true), heading(`${name}_significant`, "", false),
    )
  }
  const columns = data.shown.map((name) => cellsOf(measures[name]))
  const body = table.createTBody()
  points.forEach((point, i) => {
    const row = body.insertRow()
    data.factors.forEach(({labels, places, numeric}, at) => {
      const level = data.codes[point][at]
      row.append(numeric ? number(places[level], labels[level]) : made("td", labels[level]))
    })
    row.append(...columns.flatMap((cells) => cells[i]))
  })
  place.replaceChildren(table)
}

const offer = () => {
  const {labels} = data.factors[Number(factorSelect.value)]
  baselineSelect.replaceChildren(...labels.map((label, level) => made("option", label, {value: String(level)})))
  show()
}

if (place) {
  factorSelect.addEventListener("change", offer)
  baselineSelect.addEventListener("change", show)
  offer()
}
