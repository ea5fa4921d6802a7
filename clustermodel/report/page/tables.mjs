// Tables: a click on a heading sorts by its column, the button below downloads what the table shows, with all digits, as CSV.

const exactOf = (cell) => cell.dataset.v ?? cell.textContent

const sort = (heading) => {
  const table = heading.closest("table")
  const headings = [...heading.parentElement.cells]
  const column = headings.indexOf(heading)
  const ascending = heading.getAttribute("aria-sort") !== "ascending"
  for (const one of headings) one.removeAttribute("aria-sort")
  heading.setAttribute("aria-sort", ascending ? "ascending" : "descending")
  const numeric = heading.classList.contains("number")
  const key = ({cells}) => (numeric ? parseFloat(exactOf(cells[column])) : exactOf(cells[column]))
  const rows = [...table.tBodies[0].rows].map((row) => [key(row), row])
  rows.sort(([one], [other]) => {
    if (Number.isNaN(one) || Number.isNaN(other)) return Number.isNaN(one) - Number.isNaN(other)  // what is missing is last
    return (one < other ? -1 : one > other ? 1 : 0) * (ascending ? 1 : -1)
  })
  table.tBodies[0].append(...rows.map(([, row]) => row))
}

// A field of a CSV file.  A spreadsheet would take a text that begins with =, +, -, @ for a formula.
const field = (text, numeric) => {
  const guarded = !numeric && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded
}

const csvOf = (table) => {
  const headings = [...table.tHead.rows[0].cells]
  const kept = [...headings.keys()].filter((column) => !("skip" in headings[column].dataset))
  const number = (column) => headings[column].classList.contains("number")
  const names = (column) => {
    const {name, half} = headings[column].dataset
    return [name ?? headings[column].textContent, ...(half ? [half] : [])]
  }
  const lines = [kept.flatMap(names).map((name) => field(name, false))]
  for (const {cells} of table.tBodies[0].rows) {
    lines.push(kept.flatMap((column) => {
      const {v, half} = cells[column].dataset
      const missing = number(column) && v === undefined && cells[column].textContent === "-"
      return [missing ? "" : field(exactOf(cells[column]), number(column)), ...(half === undefined ? [] : [half])]
    }))
  }
  return lines.map((line) => `${line.join(",")}\n`).join("")
}

document.addEventListener("click", ({target}) => {
  const heading = target.closest?.(".data thead th button")?.closest("th")
  if (heading) sort(heading)
  if (!target.matches?.("button.csv")) return
  const table = target.previousElementSibling.querySelector("table") ?? target.previousElementSibling
  const link = document.createElement("a")
  link.href = URL.createObjectURL(new Blob([csvOf(table)], {type: "text/csv"}))
  link.download = `${table.dataset.name.replace(/[^A-Za-z0-9]+/g, "_")}.csv`
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
})
