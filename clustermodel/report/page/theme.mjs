// Paints the plots in the colours of the page: light, dark, and light again on paper.

const LIGHT = {ink: "#1a1a1a", soft: "#4a4a4a", grid: "#dddddd", ground: "#ececec", page: "#ffffff"}
const DARK = {ink: "#f2f2f2", soft: "#c4c4c4", grid: "#3a3a3a", ground: "#2c2c2e", page: "#18181a"}

const colours = {
  LinearAxis: ({soft}) => ({axis_label_text_color: soft, major_label_text_color: soft, axis_line_color: soft, major_tick_line_color: soft, minor_tick_line_color: soft}),
  Grid: ({grid}) => ({grid_line_color: grid}),
  Legend: ({soft, page, grid}) => ({label_text_color: soft, background_fill_color: page, inactive_fill_color: page, border_line_color: grid}),
  Title: ({soft}) => ({text_color: soft}),
  Figure: ({grid, ground}, model) => ({outline_line_color: grid, ...(model.tags.includes("ground") ? {background_fill_color: ground} : {})}),
}
colours.LogAxis = colours.LinearAxis

let listening = false

const paint = (theme) => {
  for (const root of Bokeh.documents[0].roots()) {
    for (const model of root.references()) {
      if (model.tags?.includes("ink")) model.line_color = theme.ink
      const chosen = colours[model.type]?.(theme, model)
      if (chosen) model.setv(chosen)
    }
  }
}

export default () => {
  const dark = matchMedia("(prefers-color-scheme: dark)")
  const print = matchMedia("print")
  const repaint = () => paint(dark.matches && !print.matches ? DARK : LIGHT)
  if (!listening) {
    dark.addEventListener("change", repaint)
    print.addEventListener("change", repaint)
  }
  listening = true
  repaint()
}
