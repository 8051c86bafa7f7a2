// Tabs: one for each view, opened by #id in the address, drawn when first opened. "#memory?tile=3" hands {tile: "3"} to the view.

// What `draw` returns, if anything, is told of another address of the same view: it changes what is shown, and answers whether it could.
page.view = (id, title, draw) => page.views.push({ id, title, draw });

page.parameters = () => Object.fromEntries(new URLSearchParams(location.hash.split("?")[1] ?? ""));

page.address = (view, parameters = {}) => {
  const text = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== null && value !== "")).toString();
  return `#${view}${text ? `?${text}` : ""}`;
};

// The number that an address asks for, from 0 to less than `end`; `usual` where it asks for none, or for no such one.
page.numbered = (text, end, usual) => {
  const number = text ? Number(text) : NaN;
  return Number.isInteger(number) && number >= 0 && number < end ? number : usual;
};

page.link = (words, view, parameters) => page.element("a", { href: page.address(view, parameters) }, words);

// Note what is selected in the address, so that it can be passed on; nothing is drawn anew. `step` makes it a step of the way back.
page.remember = (parameters, step = false) => {
  const address = page.address(asked().id, { ...page.parameters(), ...parameters });
  if (address === location.hash) return;
  history[step ? "pushState" : "replaceState"](null, "", address);
  asked().drawn = location.hash.split("?")[1] ?? "";
};

async function open(view, focus) {
  for (const one of page.views) {
    const chosen = one === view;
    one.tab.setAttribute("aria-selected", String(chosen));
    one.tab.tabIndex = chosen ? 0 : -1;
    one.panel.hidden = !chosen;
  }
  if (focus) view.tab.focus();
  view.tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  const state = location.hash.split("?")[1] ?? "";
  if (view.drawn === state) return;
  const other = view.drawn !== undefined && view.change;
  view.drawn = state;
  if (other && (await other(page.parameters()))) return;
  const place = page.element("div"); // a drawing that is overtaken by the next one goes on in a place of its own, unseen
  view.panel.replaceChildren(place);
  delete view.panel.dataset.drawn;
  view.change = undefined;
  try {
    const change = await view.draw(place, page.parameters());
    if (place.isConnected) view.change = change;
  } catch (/** @type {any} */ error) {
    place.append(page.notice(`This view could not be drawn: ${error.message}`));
    console.error(error);
  }
  if (place.isConnected) view.panel.dataset.drawn = "true";
}

const asked = () => page.views.find((one) => one.id === location.hash.slice(1).split("?")[0]) ?? page.views[0];

page.start = () => {
  const tabs = document.getElementById("tabs");
  for (const view of page.views) {
    view.tab = page.element(
      "a",
      { role: "tab", id: `tab-${view.id}`, href: `#${view.id}`, "aria-controls": `panel-${view.id}` },
      view.title,
    );
    view.panel = page.element("section", {
      role: "tabpanel",
      id: `panel-${view.id}`,
      "aria-labelledby": `tab-${view.id}`,
      tabindex: "-1",
      hidden: true,
    });
    tabs.append(view.tab);
    document.getElementById("panels").append(view.panel);
  }
  tabs.addEventListener("keydown", (event) => {
    const place = page.views.findIndex((one) => one.tab === event.target);
    const last = page.views.length - 1;
    const to = { ArrowRight: place === last ? 0 : place + 1, ArrowLeft: place === 0 ? last : place - 1, Home: 0, End: last }[
      event.key
    ];
    if (place < 0 || to === undefined) return;
    event.preventDefault();
    history.pushState(null, "", `#${page.views[to].id}`);
    open(page.views[to], true);
  });
  window.addEventListener("hashchange", () => open(asked(), false));
  window.addEventListener("popstate", () => open(asked(), false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const view of page.views) view.drawn = undefined;
    open(asked(), false);
  });
  return open(asked(), false);
};
