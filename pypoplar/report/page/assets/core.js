"use strict";
// The page's data and its elements. All text goes into the document as text, never as markup.

const page = { views: [], data: JSON.parse(document.getElementById("data").textContent) };

/** @param {string} tag @param {Object<string, any>} attributes @param {...any} children @returns {any} an element */
page.element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((one) => one !== null && one !== undefined));
  return made;
};

// What a view says where the report has nothing to draw.
page.notice = (...words) => page.element("p", { class: "notice" }, ...words);

const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array };
const unpacked = new Map();

// The array or value behind a reference such as {block: 3, type: "u2", length: 1472}.
page.unpack = (reference) => {
  if (!reference) return Promise.resolve(null);
  if (!unpacked.has(reference.block)) unpacked.set(reference.block, unpack(reference));
  return unpacked.get(reference.block);
};

async function unpack(reference) {
  const response = inflated(document.getElementById(`block${reference.block}`));
  if (reference.type === "json") return JSON.parse(await response.text());
  return new ARRAYS[reference.type](await response.arrayBuffer());
}

// What an element holds in base64, compressed. The element goes.
function inflated(holder) {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old: it cannot unpack the page's data");
  const text = atob(holder.textContent);
  holder.remove();
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")));
}

// All the references of an object at once: {a: reference, b: null, c: 7} becomes {a: array, b: null, c: 7}.
page.unpackAll = async (object) => {
  const names = Object.keys(object);
  const values = await Promise.all(
    names.map((name) => (object[name]?.block !== undefined ? page.unpack(object[name]) : object[name])),
  );
  return Object.fromEntries(names.map((name, place) => [name, values[place]]));
};

// Rows of one number per tile. `load(numbers)` unpacks what is needed; `row(number)` is then at hand, null for -1.
/** @param {{rows: number, tiles: number, chunks: any[], left_out: boolean}} data */
page.tileRows = (data) => {
  const chunks = new Map();
  return {
    tiles: data.tiles,
    leftOut: data.left_out,
    async load(numbers) {
      const needed = new Set();
      for (const one of numbers) if (one >= 0) needed.add(Math.floor(one / data.rows));
      await Promise.all(Array.from(needed, async (one) => chunks.set(one, await page.unpack(data.chunks[one]))));
    },
    row(number) {
      if (number < 0) return null;
      const place = (number % data.rows) * data.tiles;
      return chunks.get(Math.floor(number / data.rows)).subarray(place, place + data.tiles);
    },
  };
};

// The steps of an execution as objects, from their columns.
page.records = (columns) => {
  const names = Object.keys(columns).filter((name) => name !== "rows");
  return columns.name.map((_, place) => {
    const made = { place, rows: {} };
    for (const name of names) made[name] = columns[name][place];
    for (const name of Object.keys(columns.rows ?? {})) made.rows[name] = columns.rows[name][place];
    return made;
  });
};

page.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
