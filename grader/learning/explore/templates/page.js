"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const token = new URLSearchParams(location.search).get("token");
const form = document.getElementById("controls");
const steps = document.getElementById("steps");
const behind = document.getElementById("behind");

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// A sentence in which `code` is code.
function words(tag, text, attributes = {}) {
  const pieces = text.split("`").map((piece, place) => place % 2 ? make("code", {}, piece) : piece);
  return make(tag, attributes, ...pieces);
}

function say(id, ...sentences) {
  document.getElementById(id).replaceChildren(words("span", sentences.filter(Boolean).join(" ")));
}

// --- the controls ---------------------------------------------------------------------------

function field(control, id) {
  const { kind, start, values } = control;
  if (kind === "slider") {
    const input = make("input", { id, type: "range", min: 0, max: values.length - 1, value: start });
    const output = make("output", { for: id });
    const tell = () => {
      output.textContent = values[input.value];
      input.setAttribute("aria-valuetext", values[input.value]);
    };
    input.addEventListener("input", tell);
    form.addEventListener("reset", () => setTimeout(tell));
    tell();
    return [input, output];
  }
  if (kind === "text" && data.live) {
    const list = make("datalist", { id: `${id}-list` },
      ...values.map(value => make("option", { value })));
    const options = { id, type: "text", maxlength: 200, value: values[start], list: list.id };
    return [make("input", { ...options, autocomplete: "off", spellcheck: "false" }), list];
  }
  const options = values.map((value, place) => new Option(value, place, place === start, place === start));
  return [make("select", { id }, ...options)];
}

function swapField() {
  const select = make("select", { id: "swap" }, new Option("nothing", ""));
  const groups = {};
  for (const { id, function: name, label } of data.swaps) {
    if (!groups[name]) select.append(groups[name] = make("optgroup", { label: name }));
    groups[name].append(new Option(label, id));
  }
  return select;
}

data.controls.forEach((control, place) => {
  const id = `control-${control.name}`;
  form.append(make("label", { for: id }, control.label), ...field(control, id));
});
const swap = swapField();
if (data.swaps.length) form.append(make("label", { for: "swap" }, "Swap in"), swap);
form.append(make("button", { type: "reset" }, "Start again"));

const inputs = data.controls.map(control => document.getElementById(`control-${control.name}`));
const settings = () => inputs.map(input => input.type === "text" ? input.value : Number(input.value));

// --- the results ----------------------------------------------------------------------------

async function run(now, id) {
  if (!data.live) {
    const found = data.runs[JSON.stringify([now, id])];
    return found && { ...found, parts: found.parts.map(number => data.parts[number]) };
  }
  const answer = await fetch("compute", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Token": token },
    body: JSON.stringify({ settings: now, swap: id }),
  });
  return answer.json();
}

let busy = false, again = false, shown = "", picked = null;

// Show the result for the controls. While one is being computed, only the last change counts.
async function update() {
  again = true;
  if (busy) return;
  busy = true;
  steps.setAttribute("aria-busy", "true");
  try {
    while (again) {
      again = false;
      await show();
    }
  } catch (error) {
    console.error(error);
    shown = "";
    say("result", "`grade explore` does not answer. Start it in the terminal again, and open the address that it prints.");
  } finally {
    busy = false;
    steps.removeAttribute("aria-busy");
  }
}

async function show() {
  const id = swap.value;  // it may have changed by the time of the answer
  let note = "", found = await run(settings(), id);
  if (!found) {  // only in a file
    inputs.forEach((input, place) => {
      input.value = data.controls[place].start;
      input.dispatchEvent(new Event("input"));  // it does not bubble, so only the slider's own words follow
    });
    note = "This file knows each swap only with the other controls as they start.";
    found = await run(settings(), id);
  }
  const other = id ? await run(settings(), "") : null;
  const all = JSON.stringify([found, other, note]);
  if (all === shown) return;
  shown = all;
  if (found.error) {
    behind.replaceChildren();
    steps.replaceChildren();
    say("whose", "");
    say("result", found.error);
    return;
  }
  const parts = found.parts.filter(part => part.name);
  const before = Object.fromEntries((other ? other.parts : []).map(part => [part.name, part]));
  const changed = parts.filter(part => other && differs(part, before[part.name]));
  steps.replaceChildren(...found.parts.map(part =>
    part.name ? stepShown(part, parts, other && before[part.name]) : words("p", part)));
  steps.append(...stopShown(found));
  showBehind(parts);
  const last = found.parts[found.parts.length - 1];
  say("result", note, swapTold(found, changed, id), stopTold(found), last && !last.name ? last : "");
  say("whose", whoseTold(found.whose));
}

function swapTold({ whose }, changed, id) {
  const chosen = data.swaps.find(each => each.id === id);
  if (!chosen) return "";
  const name = `\`${chosen.function}\``;
  if (!(chosen.function in whose)) return `With these settings ${name} is not called, so the swap changes nothing.`;
  const effect = changed.length
    ? `It changes ${changed.length} of the steps, first "${changed[0].name}"; changed numbers have a \u2260.`
    : "It changes no number here.";
  return `${name} is swapped: ${chosen.label}. ${chosen.says && `"${chosen.says}"`} ${effect}`;
}

function stopTold({ stop }) {
  if (!stop) return "";
  const why = stop.not_written ? "is not written yet." : "gave no usable result.";
  return `The steps end here: \`${stop.function || "the example"}\` ${why}`;
}

function stopShown({ stop, printed }) {
  const found = [];
  if (stop) {
    found.push(words("p", stopTold({ stop }), { class: "note" }));
    if (!stop.not_written) found.push(make("pre", {}, stop.message));
    if (stop.slug) found.push(words("p", `To check it: \`grade ${stop.slug}\`. For a hint: \`grade hint ${stop.slug}\`.`));
  }
  if (printed) found.push(make("p", {}, "Your code printed:"), make("pre", {}, printed));
  return found.length ? [make("section", {}, ...found)] : [];
}

function whoseTold(whose) {
  const by = kind => Object.keys(whose).filter(name => whose[name] === kind).map(name => `\`${name}\``).join(", ");
  const lines = [["yours", "From the code"], ["course", "Not written yet, so the course's own"], ["swapped", "Swapped"]];
  return lines.filter(([kind]) => by(kind)).map(([kind, line]) => `${line}: ${by(kind)}.`).join(" ");
}

// --- a step ---------------------------------------------------------------------------------

// One format for all numbers of a step, as in `grade trace`.
function formatter(step) {
  const numbers = step.blocks.flatMap(block => block.rows.flat()).filter(Number.isFinite);
  const largest = Math.max(0, ...numbers.map(Math.abs));
  const digits = numbers.every(Number.isInteger) ? 0 : largest < 0.1 ? 3 : 2;
  return value => {
    if (typeof value !== "number") return typeof value === "boolean" ? (value ? "yes" : "no") : value;
    if (largest >= 1e5) return value.toExponential(2);
    const text = value.toFixed(digits);
    return Number(text) === 0 ? text.replace("-", "") : text;
  };
}

const labelOf = (axis, place) => axis.labels[place] ?? String(place);
const key = place => place.join();

// The numbers of a step by their place along all axes.
function numbersOf(step) {
  const found = new Map();
  for (const block of step.blocks) block.rows.forEach((row, r) => row.forEach((value, c) =>
    found.set(key([...block.index, r, c].slice(-step.axes.length || 3)), value)));
  return found;
}

function same(one, other) {
  const close = typeof one === "number" && typeof other === "number"
    && Math.abs(one - other) <= 1e-5 + 1e-5 * Math.abs(other);
  return one === other || close;
}

function differs(step, other) {
  if (!other) return true;
  const numbers = numbersOf(step), before = numbersOf(other);
  return numbers.size !== before.size || [...numbers].some(([place, value]) => !same(value, before.get(place)));
}

function stepShown(step, parts, other) {
  const sizes = step.axes.map(({ name, size }) => name && name !== "1" ? `${name}=${size}` : size).join(" ");
  const title = make("h2", {}, `${step.name} `, make("span", { class: "axes" }, sizes));
  const section = make("section", {}, title);
  if (step.misfit) section.append(make("p", { class: "note" }, step.misfit));
  if (step.says) section.append(words("p", step.says));
  if (!step.blocks.length) section.append(make("p", {}, "It has no numbers."));
  const before = other ? numbersOf(other) : null;
  const show = formatter(step);
  const tables = step.blocks.map(block => make("div", { class: "wide" }, table(step, block, show, parts, before)));
  section.append(make("div", { class: "tables" }, ...tables));
  return section;
}

function table(step, block, show, parts, before) {
  const rank = step.axes.length, outer = step.axes.slice(0, -2);
  const [down, across] = [step.axes[rank - 2], step.axes[rank - 1]];
  const sources = sourcesOf(step, parts);
  const largest = Math.max(...step.blocks.flatMap(each => each.rows.flat()).filter(Number.isFinite).map(Math.abs));
  const place = outer.filter(axis => axis.size > 1).map(axis => labelOf(axis, block.index[outer.indexOf(axis)]));
  const sides = [down && `rows ${down.name}`, across && `columns ${across.name}`].filter(text => text && !/ 1?$/.test(text));
  const caption = [...place, ...sides].join(", ");
  const shown = make("table", { "aria-label": `${step.name}, ${caption}`, ...sources.length && { role: "grid" } });
  shown.append(make("caption", {}, caption));
  if (across) {
    const names = block.rows[0].map((_, c) => make("th", { scope: "col" }, labelOf(across, c)));
    shown.append(make("thead", {}, make("tr", {}, ...(down ? [make("td")] : []), ...names)));
  }
  const body = block.rows.map((row, r) => make("tr", {},
    ...(down ? [make("th", { scope: "row" }, labelOf(down, r))] : []),
    ...row.map((value, c) => {
      const at = [...block.index, r, c].slice(-rank || 3);
      const cell = make("td", {}, show(value));
      if (Number.isFinite(value) && largest) cell.style.setProperty("--shade", `${100 * Math.abs(value) / largest}%`);
      if (value === true) cell.style.setProperty("--shade", "100%");
      cell.classList.toggle("negative", value < 0);
      if (before && !same(value, before.get(key(at)))) {
        cell.classList.add("changed");
        cell.prepend("\u2260 ");
      }
      if (sources.length) explain(cell, step, at, parts);
      return cell;
    })));
  shown.append(make("tbody", {}, ...body));
  if (sources.length) arrows(shown);
  return shown;
}

// --- what is behind a number ------------------------------------------------------------------

function explain(cell, step, place, parts) {
  cell.setAttribute("role", "gridcell");
  cell.tabIndex = -1;
  for (const event of ["mouseenter", "focus"]) cell.addEventListener(event, () => {
    picked = { name: step.name, place };
    showBehind(parts);
  });
  cell.addEventListener("click", () => cell.focus());
}

// The number picked last, if the new steps have it; else how to pick one.
function showBehind(parts) {
  const step = picked && parts.find(part => part.name === picked.name);
  const is = step && numbersOf(step).has(key(picked.place)) && sourcesOf(step, parts).length;
  const made = parts.filter(part => part.behind.length).map(part => part.name).join(", ");
  const how = `To see what a number is made of, point at one of these steps: ${made}. Or go there with Tab and the arrow keys.`;
  const found = make("div", {}, ...is ? productShown(step, picked.place, parts) : made ? [make("p", {}, how)] : []);
  if (found.textContent !== behind.textContent) behind.replaceChildren(found);  // else it would be read out again
}

const sourcesOf = (step, parts) => step.behind.map(name => parts.find(part => part.name === name)).filter(Boolean);

// One stop of the Tab key for each table; the arrow keys move within it.
function arrows(shown) {
  const rows = [...shown.tBodies[0].rows].map(row => [...row.querySelectorAll("td")]);
  rows[0][0].tabIndex = 0;
  shown.addEventListener("focusin", event => {
    rows.flat().forEach(cell => { cell.tabIndex = cell === event.target ? 0 : -1; });
  });
  shown.addEventListener("keydown", event => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const r = rows.findIndex(row => row.includes(event.target));
    if (!move || r < 0) return;
    event.preventDefault();
    rows[r + move[0]]?.[rows[r].indexOf(event.target) + move[1]]?.focus();
  });
}

// The two vectors whose product is behind the number of `step` at `place`.
function productShown(step, place, parts) {
  const sources = sourcesOf(step, parts);
  const at = Object.fromEntries(step.axes.map(({ name }, number) => [name, place[number]]));
  const names = step.axes.map(axis => axis.name).join(" ");
  const along = sources[0].axes.find(({ name }) => !(name in at));
  const where = step.axes.filter(axis => axis.size > 1).map((axis, number) =>
    `${axis.name} ${labelOf(axis, at[axis.name])}`).join(", ");
  const chain = parts.filter(part => part.axes.map(axis => axis.name).join(" ") === names)
    .map(part => `${part.name} ${formatter(part)(numbersOf(part).get(key(place)))}`);
  const found = [make("h2", {}, `${step.name}: ${where}`), make("p", {}, chain.join(" \u2192 "))];
  if (!along) return found;
  const vectors = sources.map(source => {
    const numbers = numbersOf(source);
    return Array.from({ length: along.size }, (_, free) =>
      numbers.get(key(source.axes.map(({ name }) => name === along.name ? free : at[name]))));
  });
  if (vectors.some(vector => vector.some(value => !Number.isFinite(value)))) return found;
  const products = vectors[0].map((_, number) => vectors.reduce((sum, vector) => sum * vector[number], 1));
  const total = products.reduce((sum, value) => sum + value, 0);
  const line = (name, numbers) => make("tr", {}, make("th", { scope: "row" }, name),
    ...numbers.map(value => make("td", {}, value.toFixed(2))));
  const head = make("tr", {}, make("td"), ...vectors[0].map((_, number) =>
    make("th", { scope: "col" }, `${along.name} ${labelOf(along, number)}`)));
  const lines = [...sources.map((source, number) => line(source.name, vectors[number])), line("product", products)];
  found.push(make("div", { class: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...lines))));
  found.push(make("p", {}, `The products add up to ${total.toFixed(2)}.`));
  return found;
}

// --- the start --------------------------------------------------------------------------------

document.getElementById("source").textContent = data.live
  ? `Computed with your code in ${data.source}. Save a change and come back to see it.`
  : `Computed beforehand with the code in ${data.source}.`;
form.addEventListener("input", update);
form.addEventListener("submit", event => event.preventDefault());
form.addEventListener("reset", () => setTimeout(update));
window.addEventListener("focus", () => data.live && update());
update();
