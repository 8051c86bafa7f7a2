// Plotly in the page's colours. Text of the user's that goes into a plot passes page.label first.

const CATEGORY_COLOURS = ["#2f6fb7", "#e08a1e", "#2e9367", "#c0504d", "#8e5bb5", "#8a6d3b", "#d770a8", "#7f8893", "#a9a934", "#3aa5b5"];
page.series = (place) => CATEGORY_COLOURS[place % CATEGORY_COLOURS.length];

page.clear = (hex, alpha) => {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${red},${green},${blue},${alpha})`;
};

page.axis = (title, more = {}) => ({
  title: { text: title, standoff: 8 },
  gridcolor: page.colour("line"),
  linecolor: page.colour("line"),
  zerolinecolor: page.colour("line"),
  automargin: true,
  separatethousands: true,
  exponentformat: "none",
  ...more,
});

// A figure with a plot in it. Call `await figure.draw(traces, layout)` once it is in the document.
page.figure = (caption, size = "") => {
  const box = page.element("div", { class: `plot ${size}`, role: "img", "aria-label": caption });
  const figure = page.element("figure", {}, box, page.element("figcaption", {}, caption));
  figure.box = box;
  figure.draw = async (traces, layout) => {
    await Plotly.react(box, traces, {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: page.colour("ink"), family: 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif', size: 13 },
      colorway: CATEGORY_COLOURS,
      margin: { l: 60, r: 20, t: 14, b: 48 },
      hoverlabel: { bgcolor: page.colour("paper"), bordercolor: page.colour("line"), font: { color: page.colour("ink") }, align: "left" },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 12 } },
      ...layout,
    }, { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] });
    box.dataset.drawn = "true";
  };
  figure.on = (event, then) => box.on(event, then);
  return figure;
};

// Bars from the longest down, with names as labels; rows: [{name, value}].
page.bars = async (figure, rows, title, colour, most = 15) => {
  const shown = rows.slice(0, most).reverse();
  figure.box.style.height = `${Math.max(9, 3.6 + 1.55 * shown.length)}rem`;
  await figure.draw(
    [{
      type: "bar", orientation: "h", x: shown.map((one) => one.value), y: shown.map((_, place) => place), marker: { color: colour },
      hovertext: shown.map((one) => `${page.label(page.named(one.name), 120)}<br>${page.format(one.value)}`), hoverinfo: "text", textposition: "none",
    }],
    {
      xaxis: page.axis(title, { rangemode: "tozero" }),
      yaxis: page.axis("", { tickvals: shown.map((_, place) => place), ticktext: shown.map((one) => page.label(page.named(one.name), page.narrow() ? 16 : 44)), fixedrange: true }),
      bargap: 0.25,
    });
};

page.narrow = () => window.innerWidth < 700;
