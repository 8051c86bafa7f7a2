// Everything is there: open the view that the address asks for, the first one otherwise. Plots wait for Plotly, which comes last.

document.addEventListener("DOMContentLoaded", async () => {
  await page.start();
  document.documentElement.dataset.ready = "true";
});
