// Search over names: steps, variables, vertex types, compute sets; and tiles by their numbers.

const MOST_FOUND = 8; // of each kind
const KINDS_FOUND = ["Tile", "Step", "Variable", "Vertex type", "Compute set"];

page.search = () => {
  const holder = document.getElementById("search");
  if (page.data.kind !== "report") return holder.remove();
  let entriesOnce;
  const list = page.element("ul", { id: "found", role: "listbox", "aria-label": "Found" });
  const box = page.element("input", {
    type: "search",
    placeholder: "Find steps, variables, vertices, tiles",
    "aria-label": "Find steps, variables, vertices, tiles",
    "aria-controls": "found",
    spellcheck: "false",
    autocomplete: "off",
  });
  holder.append(box, list);
  let turn = 0;
  const find = async () => {
    const asked = ++turn;
    const text = box.value.trim().toLowerCase();
    const entries = text ? await (entriesOnce ??= searchEntries()) : [];
    if (asked !== turn) return;
    const found = [...tilesCalled(text), ...KINDS_FOUND.flatMap((kind) => called(entries, kind, text))];
    list.hidden = !text;
    list.replaceChildren(
      ...found.map(([kind, name, address]) =>
        page.element(
          "li",
          { class: address ? null : "quiet" },
          address ? page.element("a", { href: address }, page.element("span", { class: "quiet" }, `${kind} `), name) : `${kind}: ${name}`,
        ),
      ),
    );
    if (!found.length) list.append(page.element("li", { class: "quiet" }, "nothing has this name"));
    holder.dataset.found = text;
  };
  box.addEventListener("input", find);
  list.addEventListener("click", () => (list.hidden = true));
  holder.addEventListener("keydown", (event) => {
    const links = Array.from(list.querySelectorAll("a"));
    const place = links.indexOf(document.activeElement);
    if (event.key === "Escape") {
      list.hidden = true;
      box.focus();
    } else if (event.key === "ArrowDown") links[Math.min(place + 1, links.length - 1)]?.focus();
    else if (event.key === "ArrowUp") (links[place - 1] ?? box).focus();
    else if (event.key === "Enter" && place < 0) links[0]?.click();
    else return;
    event.preventDefault();
  });
  list.hidden = true;
};

// What has the text in its name: the first of a kind, and a line for how many more there are.
function called(entries, kind, text) {
  const found = entries.filter((one) => one[0] === kind && one[1].toLowerCase().includes(text));
  found.sort((one, other) => one[1].length - other[1].length);
  const left = found.length - MOST_FOUND;
  return left > 0 ? [...found.slice(0, MOST_FOUND), [kind, `and ${page.format(left)} more`, null]] : found;
}

function tilesCalled(text) {
  const number = /^(?:tile\s*)?(\d+)$/.exec(text)?.[1];
  return number !== undefined && Number(number) < page.data.target.tiles
    ? [["Tile", number, page.address("memory", { tile: number })]]
    : [];
}

// All that can be found, as [kind, name, address].
async function searchEntries() {
  const entries = [];
  if (page.data.execution) {
    const steps = await page.unpack(page.data.execution.steps);
    steps.name.forEach((name, place) => {
      const step = steps.number[place];
      entries.push(["Step", `${step} ${page.named(name)} \u00b7 ${steps.type[place]}`, page.address("steps", { step })]);
    });
  } else if (page.data.step_names) {
    (await page.unpack(page.data.step_names)).forEach(([name, type], step) =>
      entries.push(["Step", `${step} ${page.named(name)} \u00b7 ${type}`, page.address("liveness", { step })]),
    );
  }
  const variables = page.data.variables ? await page.unpack(page.data.variables.names) : [];
  variables.forEach((name, variable) => entries.push(["Variable", page.named(name), page.address("liveness", { variable })]));
  for (const { name } of (await page.unpack(page.data.vertex_types)) ?? [])
    entries.push(["Vertex type", page.named(name), page.toLines({ type: name }) ?? page.address("vertices", { type: name })]);
  for (const { name } of (await page.unpack(page.data.compute_sets)) ?? [])
    entries.push(["Compute set", page.named(name), page.address("vertices", { set: name })]);
  return entries;
}
