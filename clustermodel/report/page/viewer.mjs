// Shows one run: a Gantt chart of a window of time, and the Ousterhout matrix at an instant that a slider moves.
//
// A run comes as columns: `jobs` (one entry per job), `stays` (a gang in one row, from when until when), `pieces` (a run of
// neighbouring nodes of a stay), `events` (the machine from each event on).  Times are seconds since the first submission.

const LIMIT = 15000  // rectangles that are drawn at once, the largest ones
const WINDOW_JOBS = 150  // in the window that is shown first, about as many jobs start

let run = null

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

const write = (seconds, unit, digits = 3) => (seconds / unit).toLocaleString("en", {maximumFractionDigits: digits})

// The columns of rectangles to draw, each between `left` and `right`, `bottom` and `top`.
const rectangles = (pieces, {jobs, stays, kinds, colours, unit}, place) => {
  const columns = {
    left: [], right: [], bottom: [], top: [], colour: [], alpha: [],
    job: [], user: [], nodes: [], submit: [], begin: [], end: [], kind: [],
  }
  for (const piece of pieces) {
    const {stay, box} = place(piece)
    const job = stays.job[stay]
    const kind = stays.kind[stay]
    for (const side of ["left", "right", "bottom", "top"]) columns[side].push(box[side])
    columns.colour.push(colours[jobs.id[job] % colours.length])
    columns.alpha.push(kinds[kind] === "lost" ? 0.55 : 1)
    columns.job.push(jobs.id[job])
    columns.user.push(jobs.user[job])
    columns.nodes.push(jobs.nodes[job])
    columns.submit.push(jobs.submit[job] / unit)
    columns.begin.push(stays.begin[stay] / unit)
    columns.end.push(stays.end[stay] / unit)
    columns.kind.push(kinds[kind])
  }
  return columns
}

// Ids of jobs, where there is room for them between `first` and `last`.
const names = (boxes, first, last, tall) => {
  const wide = (last - first) * 0.009  // a digit
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

// How far apart the lowest nodes of two rows are in the chart, in nodes.
const rowHeight = ({nodes, rows}) => nodes + (rows > 1 ? Math.max(2, 0.04 * nodes) : 0)

const drawGantt = ({gantt, unit}, {jobs, stays, pieces, kinds, colours, nodes, rows}) => {
  const [first, last] = [gantt.x_range.start * unit, gantt.x_range.end * unit]
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
  const height = rowHeight({nodes, rows})
  const boxes = rectangles(shown, {jobs, stays, kinds, colours, unit}, (i) => {
    const stay = pieces.stay[i]
    const low = stays.row[stay] * height + pieces.first[i] - 0.5
    return {
      stay,
      box: {left: stays.begin[stay] / unit, right: stays.end[stay] / unit, bottom: low, top: low + pieces.nodes[i]},
    }
  })
  gantt.boxes.data = boxes
  gantt.names.data = names(boxes, gantt.x_range.start, gantt.x_range.end, rows * height * 0.04)
  gantt.note.text = there > LIMIT
    ? `The ${LIMIT.toLocaleString("en")} largest of ${there.toLocaleString("en")} rectangles are drawn; choose a shorter time.`
    : ""
}

const drawMatrix = ({matrix, gantt, time, unit, unit_name}, {jobs, stays, pieces, events, kinds, colours, nodes, rows, shared}) => {
  const event = Math.round(time.value) - 1
  const now = events.time[event]
  const shown = []
  const there = new Set()
  for (let i = 0; i < pieces.stay.length; i++) {
    const stay = pieces.stay[i]
    if (stays.begin[stay] <= now && now < stays.end[stay]) {
      shown.push(i)
      there.add(stays.job[stay])
    }
  }
  const boxes = rectangles(shown, {jobs, stays, kinds, colours, unit}, (i) => {
    const stay = pieces.stay[i]
    const row = stays.row[stay]
    return {stay, box: {left: pieces.first[i] - 0.5, right: pieces.first[i] + pieces.nodes[i] - 0.5, bottom: row + 0.44, top: row - 0.44}}
  })
  matrix.boxes.data = boxes
  matrix.names.data = names(boxes, -0.5, nodes - 0.5, 0.5)
  const row = events.row[event]
  const framed = row >= 0 ? [row] : []
  matrix.frame.data = {
    left: framed.map(() => -0.5), right: framed.map(() => nodes - 0.5),
    bottom: framed.map((of) => of + 0.5), top: framed.map((of) => of - 0.5),
  }
  const count = (number, thing) => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`
  const running = shared ? (row >= 0 ? `; row ${row} runs first` : "; nothing runs") : ""
  matrix.title.text = `at ${write(now, unit)} ${unit_name} (event ${event + 1} of ${events.time.length.toLocaleString("en")}): `
    + `${count(there.size, "job")} on the nodes, ${count(events.waiting[event], "job")} waiting${running}`
  gantt.now.location = now / unit
}

// Moves the window to the instant that is shown, if it has gone out of it.
const follow = ({gantt, time, unit}) => {
  const now = run.events.time[Math.round(time.value) - 1] / unit
  const {start, end} = gantt.x_range
  if (now < start || now > end) gantt.x_range.setv({start: now - (end - start) / 2, end: now + (end - start) / 2})
}

const open = (args, chosen) => {
  const {runs, gantt, matrix, time, unit} = args
  const found = runs[chosen]
  run = {
    ...found, name: chosen,
    jobs: found.jobs.data, stays: found.stays.data, pieces: found.pieces.data, events: found.events.data,
  }
  const {nodes, rows, shared} = run
  const height = rowHeight(run)
  const last = run.events.time.at(-1)
  gantt.overview.data = {x: found.overview.data.x, y: found.overview.data.y}
  stretch(gantt.whole, 0, last / unit)
  const [bottom, top] = [-0.5, rows * height - 0.5]
  stretch(gantt.y_range, shared ? top : bottom, shared ? bottom : top)  // rows as in the matrix, the first one on top
  const rowNumbers = Array.from({length: rows}, (_, row) => row)
  gantt.row_ticks.ticks = rowNumbers.map((row) => row * height + nodes / 2)
  gantt.axis.ticker = shared ? gantt.row_ticks : gantt.node_ticks
  gantt.axis.axis_label = shared ? "nodes, row by row" : "node"
  gantt.axis.major_label_overrides = new Map(shared ? rowNumbers.map((row) => [gantt.row_ticks.ticks[row], `row ${row}`]) : [])
  stretch(matrix.x_range, -0.5, nodes - 0.5)
  stretch(matrix.y_range, rows - 0.5, -0.5)
  matrix.plot.height = 130 + 42 * rows
  // First the longest queue is shown, and the jobs around it.
  const {time: times, waiting} = run.events
  const {begin} = run.stays  // ascending
  let longest = 0
  for (let i = 0; i < times.length; i++) if (waiting[i] > waiting[longest]) longest = i
  const at = upTo(begin, times[longest])
  const start = Math.min(begin[Math.max(at - WINDOW_JOBS / 2, 0)] ?? 0, times[longest])
  const end = Math.max(begin[at + WINDOW_JOBS / 2] ?? last, times[longest])
  stretch(gantt.x_range, start / unit, (end > start ? end : last) / unit)
  time.setv({end: Math.max(times.length, 2), value: longest + 1})
  matrix.rows.visible = shared
}

export default (args, obj) => {
  const {select, time, unit} = args
  if (run === null || run.name !== select.value) open(args, select.value)
  if (Number.isFinite(obj?.x)) time.value = Math.max(upTo(run.events.time, obj.x * unit), 1)  // a tap on the chart
  if (obj === time) follow(args)
  drawGantt(args, run)
  drawMatrix(args, run)
}
