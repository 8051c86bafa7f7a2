// Everything but Plotly is there: open the view that the address asks for, the first one otherwise.

page.start().then(() => (document.documentElement.dataset.ready = "true"));
