// Shows the stored runs of interactive_data.js: sliders choose one, and the matrix, the ledger and the numbers follow.
(() => {
  "use strict";
  const stored = window.STORED;
  const place = document.getElementById("interactive");
  if (!place || !stored) return;
  const { cost: costs, mpl: levels, load: loads } = stored.factors;
  const colours = ["#009e73", "#d55e00", "#cc79a7", "#e69f00", "#999999"]; // of the parts of the node time
  const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const drawn = (name, attributes, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  };

  const sliders = {};
  const addSlider = (id, label, values, first, show) => {
    const input = element("input", { id, type: "range", min: 0, max: values.length - 1, step: 1 });
    input.value = first;
    const output = element("output", { for: id });
    place.append(element("p", { class: "control" }, element("label", { for: id }, label), input, output));
    const update = () => {
      output.textContent = show(values[input.value]);
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => { update(); draw(); });
    sliders[id] = { value: () => values[input.value], update };
  };
  const moments = stored.runs[0].moments.map((_, number) => number);
  addSlider("cost", "Context switch, share of the slice", costs, 2, (value) => percent(value, 0));
  addSlider("mpl", "Jobs per node (MPL)", levels, 2, (value) => (value > 1 ? `${value}` : "1 (backfilling alone)"));
  addSlider("load", "Load", loads, 1, (value) => value.toFixed(1));
  addSlider("moment", "Instant of the matrix", moments, 5, (value) => `${value + 1} of ${moments.length}`);

  const width = 640;
  const matrix = drawn("svg", { id: "matrix", role: "img" });
  const ledger = drawn("svg", { id: "ledger", role: "img", viewBox: `0 0 ${width} 40` });
  const matrixTitle = element("p", { id: "matrix-title" });
  const legend = element("ul", { id: "ledger-shares" });
  const numbers = element("p", { id: "numbers", "aria-live": "polite" });
  place.append(
    element("p", { class: "rubric" }, "The Ousterhout matrix"), matrixTitle, matrix,
    element("p", { class: "rubric" }, "Where node time goes"), ledger, legend,
    element("p", { class: "rubric" }, "What users see"), numbers,
  );

  function drawMatrix(run, moment) {
    const rows = run.mpl;
    const cell = width / stored.nodes;
    const height = 34;
    matrix.setAttribute("viewBox", `0 0 ${width} ${rows * height}`);
    matrix.replaceChildren();
    for (let row = 0; row < rows; row += 1) {
      matrix.append(drawn("rect", { class: "row", x: 0, y: row * height + 1, width, height: height - 2 }));
    }
    for (const [row, column, nodes, job] of moment.gangs) {
      const place_ = { x: column * cell + 1, y: row * height + 2, width: nodes * cell - 2, height: height - 4 };
      matrix.append(drawn("rect", { class: "gang", fill: `hsl(${(job * 47) % 360} 55% 72%)`, ...place_ }));
      const middle = { x: (column + nodes / 2) * cell, y: (row + 0.5) * height + 5 };
      matrix.append(drawn("text", { ...middle, "text-anchor": "middle" }, `${job}`));
    }
    if (moment.runs !== null) {
      const frame = { x: 1, y: moment.runs * height + 1, width: width - 2, height: height - 2 };
      matrix.append(drawn("rect", { class: "running", fill: "none", ...frame }));
    }
    const jobs = new Set(moment.gangs.map((gang) => gang[3])).size;
    matrixTitle.textContent = `After ${moment.hours} hours: ${jobs} jobs on ${stored.nodes} nodes (columns)` +
      (rows > 1 ? ` in ${rows} rows; the framed row runs.` : ".");
    matrix.setAttribute("aria-label", matrixTitle.textContent);
  }

  function drawLedger(run) {
    ledger.replaceChildren();
    legend.replaceChildren();
    let left = 0;
    run.shares.forEach((share, number) => {
      const part = { x: left, y: 0, width: share * width, height: 40, fill: colours[number] };
      ledger.append(drawn("rect", part));
      left += share * width;
      const mark = element("span", { class: "mark", style: `background: ${colours[number]}` });
      const value = element("b", {}, percent(share));
      legend.append(element("li", {}, mark, `${stored.shares[number]} `, value));
    });
    const parts = run.shares.map((share, number) => `${stored.shares[number]} ${percent(share)}`);
    ledger.setAttribute("aria-label", parts.join(", "));
  }

  function tellNumbers(run) {
    const compared = (ratio) => (ratio
      ? `, ${ratio[0].toFixed(2)} times that of backfilling alone (${ratio[1].toFixed(2)} to ${ratio[2].toFixed(2)})`
      : "");
    numbers.replaceChildren(
      "Mean bounded slowdown ", element("b", { id: "slowdown" }, run.slowdown.toFixed(2)), compared(run.slowdown_ratio),
      "; mean response ", element("b", { id: "response" }, run.response_h.toFixed(2)), " h", compared(run.response_h_ratio),
      `.  Means of ${stored.replications} replications, with 95 % intervals of the paired ratios.`,
    );
  }

  function draw() {
    const [mpl, load] = [sliders.mpl.value(), sliders.load.value()];
    const cost = mpl > 1 ? sliders.cost.value() : 0; // backfilling alone pays for no switch
    const run = stored.runs.find((entry) => entry.cost === cost && entry.mpl === mpl && entry.load === load);
    drawMatrix(run, run.moments[sliders.moment.value()]);
    drawLedger(run);
    tellNumbers(run);
  }

  Object.values(sliders).forEach((slider) => slider.update());
  draw();
})();
