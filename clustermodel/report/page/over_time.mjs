// Shows the curves over time of one group of runs.

let listening = false

export default ({lines, groups, range, legend}) => {
  const select = document.getElementById("over-time-runs")
  const show = () => {
    const {time, curves} = groups[Number(select.value)]
    const length = time.map((begin, at) => (time[at + 1] ?? begin) - begin)
    const middle = time.map((begin, at) => begin + length[at] / 2)
    const {items} = legend
    legend.items = []  // it would draw all of them again whenever a curve changes
    for (const {label, sources} of lines) {
      const curve = curves[label]
      for (const [name, source] of Object.entries(sources)) {
        source.data = curve?.[name] ? {x: time, y: curve[name], middle, length} : {x: [], y: [], middle: [], length: []}
      }
    }
    legend.items = items
    range.setv({start: 0, end: time.at(-1)})
  }
  if (!listening) select.addEventListener("change", show)
  listening = true
  show()
}
