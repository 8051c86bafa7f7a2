// Numbers as people read them: thousands separators, units, no more digits than help.

// Formatters are kept: making one takes a thousand times as long as using it.
const formatters = new Map();
/** @param {number} value @param {number} digits at most @param {number} least digits */
function exact(value, digits = 0, least = 0) {
  const key = digits * 10 + least;
  if (!formatters.has(key))
    formatters.set(key, new Intl.NumberFormat("en-US", { maximumFractionDigits: digits, minimumFractionDigits: least }));
  return formatters.get(key).format(value);
}

/** @param {number} value @param {number} base from one unit to the next @param {string[]} units */
function scaled(value, base, units) {
  let place = 0;
  while (Math.abs(value) >= base && place < units.length - 1) {
    value /= base;
    place += 1;
  }
  return `${exact(value, place ? (value < 10 ? 2 : 1) : 0)} ${units[place]}`;
}

// In full, as tables show them.
/** @param {any} value @param {string} [unit] @returns {string} */
page.format = (value, unit) => {
  if (value === null || value === undefined) return "";
  switch (unit) {
    case "text":
      return String(value);
    case "bytes":
      return `${exact(value)} B`;
    case "share":
      return `${exact(value * 100, 1, 1)} %`;
    case "decimal":
      return exact(value, 3, 3);
    case "seconds":
      return page.short(value, unit);
    case "Hz":
    case "flop/s":
    case "flop":
      return page.short(value, unit);
    default:
      return exact(value);
  }
};

// In short, as headlines show them.
/** @param {number} value @param {string} [unit] @returns {string} */
page.short = (value, unit) => {
  switch (unit) {
    case "bytes":
      return scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
    case "seconds":
      return value < 1e-3
        ? `${exact(value * 1e6, 2, 2)} \u00b5s`
        : value < 1
          ? `${exact(value * 1e3, 2, 2)} ms`
          : `${exact(value, 3, 3)} s`;
    case "Hz":
      return scaled(value, 1000, ["Hz", "kHz", "MHz", "GHz"]);
    case "flop":
      return scaled(value, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"]);
    case "flop/s":
      return scaled(value, 1000, ["FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"]);
    default:
      return page.format(value, unit);
  }
};

// The exact value behind a short one, "" where the short one is exact.
/** @param {number} value @param {string} unit @returns {string} */
page.inFull = (value, unit) => {
  const units = { bytes: "B", seconds: "s", Hz: "Hz", flop: "FLOP", "flop/s": "FLOP/s" };
  return units[unit] ? `${exact(value, unit === "seconds" ? 9 : 0)} ${units[unit]}` : "";
};

// A step's or compute set's name, or words where it has none.
/** @param {string} name @returns {string} */
page.named = (name) => name || "(no name)";

// Plotly reads a little HTML in its labels: text of the user's is escaped for it, and cut where it would crowd out the plot.
/** @param {string} text @param {number} most characters @returns {string} */
page.label = (text, most = 60) => {
  const characters = Array.from(String(text));
  const cut = characters.length > most ? characters.slice(0, most - 1).join("") + "\u2026" : characters.join("");
  return cut.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
};
