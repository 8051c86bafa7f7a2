// A table that sorts by any column, filters by text, and shows a page of rows at a time.

const PAGE = 20;

// columns: [{name, label, unit, signed, link}], unit "text" or a unit of page.format; rows: objects. `link(row)` is the address that
// a cell leads to, if any. `filter` is the text that rows have at first.
// sort: a column's name, "-name" for the largest first. onPick(row) makes rows selectable.
page.table = ({ caption, columns, rows, sort = "", filter = "", onPick = null, picked = null, empty = "nothing to show" }) => {
  const state = { sort, filter: filter.toLowerCase(), first: 0, picked };
  const body = page.element("tbody");
  const heads = columns.map((column) => {
    const turn = () => {
      const down = column.unit !== "text";
      state.sort =
        state.sort === column.name
          ? `-${column.name}`
          : state.sort === `-${column.name}`
            ? column.name
            : (down ? "-" : "") + column.name;
      state.first = 0;
      fill();
    };
    const button = page.element("button", { type: "button", title: column.title ?? null, onclick: turn }, column.label);
    return page.element("th", { scope: "col", class: column.unit === "text" ? "text" : "number" }, button);
  });
  const search = page.element("input", {
    type: "search",
    placeholder: "Filter",
    "aria-label": `Filter ${caption}`,
    spellcheck: "false",
    value: filter,
  });
  search.addEventListener("input", () => {
    state.filter = search.value.toLowerCase();
    state.first = 0;
    fill();
  });
  const count = page.element("span", { class: "quiet", "aria-live": "polite" });
  const turnBy = (by) => () => {
    state.first += by;
    fill();
  };
  const back = page.element("button", { type: "button", onclick: turnBy(-PAGE) }, "Previous");
  const on = page.element("button", { type: "button", onclick: turnBy(PAGE) }, "Next");
  const table = page.element(
    "table",
    {},
    page.element("caption", {}, caption),
    page.element("thead", {}, page.element("tr", {}, heads)),
    body,
  );
  const controls = page.element("div", { class: "controls" }, search, count, back, on);
  const made = page.element(
    "div",
    { class: "table" },
    page.element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table),
    controls,
  );

  const chosen = () => {
    const texts = columns.filter((column) => column.unit === "text").map((column) => column.name);
    const found = state.filter
      ? rows.filter((row) => texts.some((name) => String(row[name]).toLowerCase().includes(state.filter)))
      : rows.slice();
    if (!state.sort) return found;
    const down = state.sort.startsWith("-");
    const name = down ? state.sort.slice(1) : state.sort;
    const text = columns.find((column) => column.name === name)?.unit === "text";
    const compare = text
      ? (a, b) => String(a[name]).localeCompare(String(b[name]), "en", { numeric: true })
      : (a, b) => (a[name] ?? -Infinity) - (b[name] ?? -Infinity);
    return found.sort(down ? (a, b) => compare(b, a) : compare);
  };

  function fill() {
    const found = chosen();
    state.first = Math.max(0, Math.min(state.first, Math.floor(Math.max(0, found.length - 1) / PAGE) * PAGE));
    const shown = found.slice(state.first, state.first + PAGE);
    body.replaceChildren(...shown.map(line));
    if (!shown.length)
      body.append(
        page.element(
          "tr",
          {},
          page.element("td", { colspan: columns.length, class: "quiet" }, state.filter ? "no row has this text" : empty),
        ),
      );
    columns.forEach((column, place) => {
      const order = state.sort === column.name ? "ascending" : state.sort === `-${column.name}` ? "descending" : "none";
      heads[place].setAttribute("aria-sort", order);
    });
    count.textContent =
      found.length > PAGE
        ? `${page.format(state.first + 1)} to ${page.format(state.first + shown.length)} of ${page.format(found.length)}`
        : `${page.format(found.length)} ${found.length === 1 ? "row" : "rows"}`;
    back.hidden = on.hidden = found.length <= PAGE;
    back.disabled = state.first === 0;
    on.disabled = state.first + PAGE >= found.length;
    search.hidden = rows.length < 6 && !state.filter;
  }

  function line(row) {
    const cells = columns.map((column) => cell(column, row[column.name], column.link?.(row), row));
    if (!onPick) return page.element("tr", {}, cells);
    const pick = () => {
      state.picked = row;
      for (const one of body.children) one.setAttribute("aria-selected", "false");
      made.setAttribute("aria-selected", "true");
      onPick(row);
    };
    const made = page.element(
      "tr",
      {
        class: "pick",
        tabindex: "0",
        "aria-selected": String(state.picked === row),
        onclick: (event) => event.target.closest("a") ?? pick(),
      },
      cells,
    );
    made.addEventListener("keydown", (event) => {
      if ((event.key === "Enter" || event.key === " ") && event.target === made) {
        event.preventDefault();
        pick();
      }
    });
    return made;
  }

  fill();
  return made;
};

// How a difference is told: worse or better, and as large as it is of what it was: what is less than a hundredth is grey, a tenth is bold.
page.changed = (change, before) => {
  const part = before ? Math.abs(change / before) : Infinity;
  const size = part < 0.01 ? " slight" : part < 0.1 ? "" : " strong";
  return `${change > 0 ? "more" : "less"}${size}`;
};

// A name that a narrow column breaks behind its separators, not within words.
page.breakable = (text) => text.split(/(?<=[/_.:,<>])/).flatMap((part, place) => (place ? [page.element("wbr"), part] : [part]));

function cell(column, value, address, row) {
  const written = page.format(value, column.unit);
  const kind = column.unit === "text" ? "text" : "number";
  const text = kind === "text" ? page.breakable(String(written)) : written;
  if (address) return page.element("td", { class: kind }, page.element("a", { href: address }, text));
  if (!column.signed || !value) return page.element("td", { class: kind }, text);
  return page.element("td", { class: `number ${page.changed(value, column.of?.(row))}` }, (value > 0 ? "+" : "") + text);
}

// The address of a name among all names.
page.toName = (name) => page.address("names", { at: name.split("/").filter(Boolean).join("/") || "/", fold: "no" });

// The address of a row's step; rows that stand for none lead nowhere.
page.toStep = (row) => {
  const step = row.step ?? row.number;
  return Number.isInteger(step) && step >= 0 ? page.address("steps", { step }) : null;
};
