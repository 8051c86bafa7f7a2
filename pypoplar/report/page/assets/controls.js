// Controls of the views.

page.choice = (label, options, value, then) => {
  const select = page.element(
    "select",
    { name: label },
    options.map(([one, words]) => page.element("option", { value: one, selected: one === value }, words)),
  );
  select.addEventListener("change", () => then(select.value));
  return page.element("label", {}, label, select);
};

page.check = (label, on, then) => {
  const box = page.element("input", { type: "checkbox", name: label, checked: on });
  box.addEventListener("change", () => then(box.checked));
  return page.element("label", {}, box, label);
};

page.number = (label, value, most, then) => {
  const box = page.element("input", { type: "number", name: label, min: "0", max: most, value });
  box.addEventListener("change", () => {
    if (box.value !== "") then(Number(box.value));
  });
  return page.element("label", {}, label, box);
};
