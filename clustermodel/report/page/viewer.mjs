// Shows one run or two: Gantt charts of a window of time, and the Ousterhout matrices at an instant that one slider moves.
//
// A run has columns: `jobs` (one entry per job), `stays` (a gang in one row, from when until when), `pieces` (neighbouring
// nodes of a stay), `events` (the machine from each event on).  Times are seconds since the first submission.

const LIMIT = 15000  // rectangles that are drawn at once, the largest ones
const WINDOW_JOBS = 150  // in the window that is shown first, about as many jobs start

const slider = document.getElementById("event")
const selects = [1, 2].map((panel) => document.getElementById(`run-${panel}`))
let open = []  // for each panel its run, or null
let times = []  // of the events of all open runs, ascending
let chosen = null  // the id of a job
let args = null

// The number of sorted values that are at most `value`.
const upTo = (values, value) => {
  let [low, high] = [0, values.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle] <= value) low = middle + 1
    else high = middle
  }
  return low
}

// Sets a range, to which a reset comes back.
const stretch = (range, start, end) => range.setv({start, end, reset_start: start, reset_end: end})

// The colour of letters on a colour.
const contrast = (colour) => {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16))
  return 0.3 * red + 0.59 * green + 0.11 * blue < 128 ? "white" : "black"
}

const write = (number, digits = 3) => number.toLocaleString("en", {maximumFractionDigits: digits})
const counted = (number, thing) => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`
// A recorded run is above the other one, so that their times agree; two simulated ones are beside each other.
const sideBySide = () => open[1] !== null && !open[0].recorded
const now = () => times[Number(slider.value) - 1]

// How far apart the lowest nodes of two rows are in the chart, in nodes.
const rowHeight = ({nodes, rows}) => nodes + (rows > 1 ? Math.max(2, 0.04 * nodes) : 0)

// Where a piece is in the chart, and in the matrix.
const inGantt = (run, piece) => {
  const {stays, pieces} = run
  const stay = pieces.stay[piece]
  const bottom = stays.row[stay] * rowHeight(run) + pieces.first[piece] - 0.5
  return {
    left: stays.begin[stay] / args.unit, right: stays.end[stay] / args.unit, bottom, top: bottom + pieces.nodes[piece],
  }
}
const inMatrix = ({stays, pieces}, piece) => {
  const row = stays.row[pieces.stay[piece]]
  const left = pieces.first[piece] - 0.5
  return {left, right: left + pieces.nodes[piece], bottom: row + 0.44, top: row - 0.44}
}

// The columns of the rectangles of some pieces.
const rectangles = (run, shown, place) => {
  const {jobs, stays, pieces} = run
  const {kinds, colours, unit} = args
  const columns = {
    left: [], right: [], bottom: [], top: [], colour: [], alpha: [],
    job: [], user: [], nodes: [], submit: [], begin: [], end: [], kind: [], place: [],
  }
  for (const piece of shown) {
    const stay = pieces.stay[piece]
    const job = stays.job[stay]
    const kind = kinds[stays.kind[stay]]
    for (const [side, value] of Object.entries(place(run, piece))) columns[side].push(value)
    columns.colour.push(colours[jobs.id[job] % colours.length])
    columns.alpha.push(kind === "lost" || kind === "failed" ? 0.55 : 1)
    columns.job.push(jobs.id[job])
    columns.user.push(jobs.user[job])
    columns.nodes.push(jobs.nodes[job])
    columns.submit.push(jobs.submit[job] / unit)
    columns.begin.push(stays.begin[stay] / unit)
    columns.end.push(stays.end[stay] / unit)
    columns.kind.push(kind)
    columns.place.push(job)
  }
  return columns
}

// Ids of jobs, where they fit between `first` and `last`.
const names = (boxes, first, last, tall) => {
  const wide = (last - first) * 0.009 * (sideBySide() ? 2 : 1)  // a digit
  const columns = {x: [], y: [], text: [], colour: []}
  for (let i = 0; i < boxes.left.length; i++) {
    if (boxes.kind[i] !== "run") continue  // they are hatched: a label would not be legible
    const text = String(boxes.job[i])
    const [left, right] = [Math.max(boxes.left[i], first), Math.min(boxes.right[i], last)]
    if (right - left < wide * (text.length + 1) || Math.abs(boxes.top[i] - boxes.bottom[i]) < tall) continue
    columns.x.push((left + right) / 2)
    columns.y.push((boxes.top[i] + boxes.bottom[i]) / 2)
    columns.text.push(text)
    columns.colour.push(contrast(boxes.colour[i]))
  }
  return columns
}

// The rectangles of the chosen job among boxes.
const frames = (boxes) => {
  const columns = {left: [], right: [], bottom: [], top: []}
  for (let i = 0; i < boxes.left.length; i++) {
    if (boxes.job[i] !== chosen) continue
    for (const side of Object.keys(columns)) columns[side].push(boxes[side][i])
  }
  return columns
}

const fill = (sources, boxes, first, last, tall) => {
  sources.boxes.data = boxes
  sources.names.data = names(boxes, first, last, tall)
  sources.chosen.data = frames(boxes)
}

const drawGantt = (run, {sources}, note) => {
  const {start, end} = args.window
  const [first, last] = [start * args.unit, end * args.unit]
  const {stays, pieces} = run
  let shown = []
  for (let i = 0; i < pieces.stay.length; i++) {
    const stay = pieces.stay[i]
    if (stays.begin[stay] < last && stays.end[stay] > first) shown.push(i)
  }
  const there = shown.length
  if (there > LIMIT) {
    const size = (i) => (stays.end[pieces.stay[i]] - stays.begin[pieces.stay[i]]) * pieces.nodes[i]
    shown = shown.sort((one, other) => size(other) - size(one)).slice(0, LIMIT)
  }
  fill(sources, rectangles(run, shown, inGantt), start, end, run.rows * rowHeight(run) * 0.04)
  note.textContent = there > LIMIT
    ? `The ${LIMIT.toLocaleString("en")} largest of ${there.toLocaleString("en")} rectangles are drawn; choose a shorter time.`
    : ""
}

const drawMatrix = (run, {sources, frame}, {now: line}, title) => {
  const {stays, pieces, events, nodes, shared, recorded} = run
  const event = Math.max(upTo(events.time, now()) - 1, 0)
  const instant = events.time[event]
  const shown = []
  const there = new Set()
  for (let i = 0; i < pieces.stay.length; i++) {
    const stay = pieces.stay[i]
    if (stays.begin[stay] <= instant && instant < stays.end[stay]) {
      shown.push(i)
      there.add(stays.job[stay])
    }
  }
  fill(sources, rectangles(run, shown, inMatrix), -0.5, nodes - 0.5, 0.5)
  const row = events.row[event]
  const framed = row >= 0 ? [row] : []
  frame.data = {
    left: framed.map(() => -0.5), right: framed.map(() => nodes - 0.5),
    bottom: framed.map((of) => of + 0.5), top: framed.map((of) => of - 0.5),
  }
  const down = events.down[event] ? `, ${counted(events.down[event], "node")} down` : ""
  const reserved = events.reserved?.[event] ? `, ${counted(events.reserved[event], "node")} reserved` : ""
  const running = shared && !recorded ? (row >= 0 ? `; row ${row} runs first` : "; nothing runs") : ""
  title.textContent = `at ${write(now() / args.unit)} ${args.unit_name} (event ${event + 1} of ${events.time.length.toLocaleString("en")}): `
    + `${counted(there.size, "job")} on the nodes, ${counted(events.waiting[event], "job")} waiting${down}${reserved}${running}`
  line.location = now() / args.unit
}

// What is known about why a job started when it did.
const reasonOf = ({jobs, stays, pieces}, job, begin) => {
  if (begin === null) return "it did not start"
  const reasons = []
  if (jobs.wait[job] === 0) reasons.push("it started when it was submitted")
  if (jobs.backfilled[job]) reasons.push("backfilled: it started before a job ahead of it in the queue")
  if (jobs.head[job] >= 0) reasons.push(`first left waiting at the head of the queue at ${write(jobs.head[job] / args.unit)} ${args.unit_name}`)
  if (jobs.reserved[job] >= 0) {
    const reserved = jobs.reserved[job]
    const late = begin - reserved
    const how = Math.abs(late) < 1 ? "it started then" : late < 0 ? "it started earlier" : "it started later"
    reasons.push(`first guaranteed start at ${write(reserved / args.unit)} ${args.unit_name}: ${how}`)
  }
  return reasons.length ? reasons.join("; ") : "it fitted when its turn came"
}

// The facts of the chosen job in a run, and its pieces; null if the run does not have it.
const factsOf = (run) => {
  const {jobs, stays, pieces} = run
  const job = jobs.id.indexOf(chosen)
  if (job < 0) return null
  const found = []
  for (let i = 0; i < pieces.stay.length; i++) {
    const stay = pieces.stay[i]
    if (stays.job[stay] !== job) continue
    found.push([stays.begin[stay], stays.end[stay], stays.row[stay], pieces.first[i], pieces.nodes[i], args.kinds[stays.kind[stay]]])
  }
  const begin = found.length ? found[0][0] : null
  const seconds = (value) => (Number.isFinite(value) ? `${write(Number(value.toPrecision(7)))} s` : "-")
  return {
    facts: [
      ["run", run.label], ["status", run.recorded ? "recorded" : args.statuses[jobs.status[job]]], ["user", write(jobs.user[job])], ["nodes", write(jobs.nodes[job])],
      ["submitted", seconds(jobs.submit[job])], ["wait", seconds(jobs.wait[job])], ["response", seconds(jobs.response[job])],
      ["bounded slowdown", Number.isFinite(jobs.slowdown[job]) ? write(jobs.slowdown[job]) : "-"],
      ["run attempts", write(jobs.attempts[job])], ["start", run.recorded ? "as the log has recorded it" : reasonOf(run, job, begin)],
    ],
    pieces: found,
  }
}

const tag = (name, text, attributes = {}) => {
  const made = document.createElement(name)
  if (text !== null) made.textContent = text
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  return made
}

const row = (cells) => {
  const made = tag("tr", null)
  made.append(...cells)
  return made
}

// Shows the chosen job in each open run, so that they can be compared.
const showJob = () => {
  const box = document.getElementById("job")
  box.replaceChildren()
  box.hidden = chosen === null
  if (chosen === null) return
  box.append(tag("h3", `Job ${chosen}`))
  const found = open.map((run) => (run ? factsOf(run) : null)).filter((one) => one !== null)
  const facts = tag("table", null, {class: "facts"})
  found[0].facts.forEach(([name], at) => facts.append(row([tag("th", name), ...found.map((one) => tag("td", one.facts[at][1]))])))
  const pieces = tag("table", null, {class: "data", "data-name": `job ${chosen}`})
  const headings = ["run", "from (s)", "until (s)", "row", "first node", "nodes", "kind"]
  const head = tag("thead", null)
  head.append(row(headings.map((name, at) => tag("th", name, {"data-name": name, class: at && at < 6 ? "number" : ""}))))
  const body = tag("tbody", null)
  for (const one of found) {
    for (const piece of one.pieces) {
      const cells = piece.map((value) => (typeof value === "number" ? tag("td", write(value), {class: "number", "data-v": value}) : tag("td", value)))
      body.append(row([tag("td", one.facts[0][1]), ...cells]))
    }
  }
  pieces.append(head, body)
  const scrolled = tag("div", null, {class: "scroll"})
  scrolled.append(pieces)
  box.append(facts, tag("p", "Its pieces: neighbouring nodes, from when until when."), scrolled, tag("button", "CSV", {class: "csv", type: "button"}))
}

// Shows the run of a panel; the window goes to the longest queue of the first one.
const prepare = (run, {gantt, matrix}, column) => {
  column.hidden = run === null
  if (run === null) return
  const {nodes, rows, shared} = run
  gantt.plot.height = open[1] !== null && !sideBySide() ? 280 : 430
  const height = rowHeight(run)
  gantt.overview.data = {x: run.overview.x, y: run.overview.y}
  const [bottom, top] = [-0.5, rows * height - 0.5]
  stretch(gantt.plot.y_range, shared ? top : bottom, shared ? bottom : top)  // rows as in the matrix, the first one on top
  const numbers = Array.from({length: rows}, (_, row) => row)
  gantt.row_ticks.ticks = numbers.map((row) => row * height + nodes / 2)
  const [axis] = gantt.plot.left
  axis.ticker = shared ? gantt.row_ticks : gantt.node_ticks
  axis.axis_label = shared ? "nodes, row by row" : "node"
  axis.major_label_overrides = new Map(shared ? numbers.map((row) => [gantt.row_ticks.ticks[row], `row ${row}`]) : [])
  stretch(matrix.plot.x_range, -0.5, nodes - 0.5)
  stretch(matrix.plot.y_range, rows - 0.5, -0.5)
  matrix.plot.height = 130 + 42 * rows
  matrix.plot.left[0].visible = shared
}

// The window around the longest queue of a run, and the time of that queue.
const busiest = ({events, stays}, last) => {
  let longest = 0
  for (let i = 0; i < events.time.length; i++) if (events.waiting[i] > events.waiting[longest]) longest = i
  const then = events.time[longest]
  const at = upTo(stays.begin, then)  // they ascend
  const start = Math.min(stays.begin[Math.max(at - WINDOW_JOBS / 2, 0)] ?? 0, then)
  const end = Math.max(stays.begin[at + WINDOW_JOBS / 2] ?? last, then)
  return {start, end: end > start ? end : last, then}
}

const opened = ({label, nodes, rows, shared, recorded, jobs, stays, pieces, events, overview}) => ({
  label, nodes, rows, shared, recorded, jobs: jobs.data, stays: stays.data, pieces: pieces.data, events: events.data, overview: overview.data,
})

// Opens the runs that the lists name.  A second run keeps the window and the time.
const reopen = () => {
  const first = open[0]
  open = selects.map((select) => (select && select.value !== "" ? opened(args.runs[Number(select.value)]) : null))
  document.getElementById("panels").classList.toggle("two", sideBySide())
  open.forEach((run, at) => prepare(run, args.panels[at], document.getElementById(`panel-${at + 1}`)))
  const before = times.length ? now() : null
  const there = open.filter((run) => run !== null)
  times = there.length === 1 ? Array.from(there[0].events.time)
    : [...new Set(there.flatMap((run) => Array.from(run.events.time)))].sort((one, other) => one - other)
  slider.max = times.length
  const last = times.at(-1)
  stretch(args.whole, 0, last / args.unit)
  if (first?.label === open[0].label) {
    slider.value = Math.max(upTo(times, before), 1)
  } else {
    const {start, end, then} = busiest(open[0], last)
    slider.value = upTo(times, then)
    stretch(args.window, start / args.unit, end / args.unit)
  }
  if (!there.some((run) => run.jobs.id.includes(chosen))) chosen = null
  showJob()
}

// Moves the window to the instant that is shown, if it has gone out of it.
const follow = () => {
  const instant = now() / args.unit
  const {start, end} = args.window
  if (instant < start || instant > end) args.window.setv({start: instant - (end - start) / 2, end: instant + (end - start) / 2})
}

const drawMatrices = () => {
  open.forEach((run, at) => run && drawMatrix(run, args.panels[at].matrix, args.panels[at].gantt, document.getElementById(`instant-${at + 1}`)))
  document.getElementById("event-text").textContent = `${write(now() / args.unit)} ${args.unit_name}, event ${slider.value} of ${times.length.toLocaleString("en")}`
}

const drawCharts = () => {
  open.forEach((run, at) => run && drawGantt(run, args.panels[at].gantt, document.getElementById(`note-${at + 1}`)))
}

const draw = () => {
  drawCharts()
  drawMatrices()
}

// The job whose rectangle has been clicked; null beside all of them.
const clicked = ({boxes: {data}}, x, y) => {
  for (let i = data.left.length - 1; i >= 0; i--) {
    const [low, high] = [Math.min(data.bottom[i], data.top[i]), Math.max(data.bottom[i], data.top[i])]
    if (data.left[i] <= x && x < data.right[i] && low <= y && y < high) return data.job[i]
  }
  return null
}

const listen = () => {
  for (const select of selects) {
    select?.addEventListener("change", () => {
      reopen()
      draw()
    })
  }
  slider.addEventListener("input", () => {
    follow()
    drawMatrices()
  })
}

export default (given, obj) => {
  if (args === null) {
    args = given
    listen()
    reopen()
  }
  const panel = args.panels.find(({gantt, matrix}) => gantt.plot === obj?.origin || matrix.plot === obj?.origin)
  if (panel && Number.isFinite(obj.x)) {  // a click
    const isGantt = panel.gantt.plot === obj.origin
    chosen = clicked((isGantt ? panel.gantt : panel.matrix).sources, obj.x, obj.y)
    if (isGantt) slider.value = Math.max(upTo(times, obj.x * args.unit), 1)
    showJob()
    draw()
  } else if (obj === args.window) drawCharts()
  else draw()
}
