// Everything is there: open the view that the address asks for, the first one otherwise. Plotly is made ready in a quiet moment.

page.search();
page.start().then(() => {
  document.documentElement.dataset.ready = "true";
  setTimeout(page.needPlotly, 500);
});
