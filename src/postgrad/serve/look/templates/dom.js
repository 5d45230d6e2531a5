// Elements, numbers and times. Text goes in as text: nothing here, or anywhere below, parses HTML.
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false || value === "") continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "depth") node.style.setProperty("--depth", value);
    else if (name === "pad") node.style.paddingLeft = value;
    else node.setAttribute(name === "klass" ? "class" : name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false && child !== ""));
  return node;
}
const $ = id => document.getElementById(id);
const count = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
const number = n => n < 10000 ? String(n) : n < 1e6 ? `${(n / 1e3).toFixed(n < 1e5 ? 1 : 0)}k` : `${(n / 1e6).toFixed(1)}M`;
function moment(text) {
  const at = new Date(text);
  return text && !isNaN(at) ? at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) : text;
}
function clock(text) {
  const at = new Date(text);
  return text && !isNaN(at) ? at.toLocaleTimeString() : text;
}
function span(first, last) {
  const seconds = (new Date(last) - new Date(first)) / 1000;
  if (!(seconds >= 1)) return "";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 86400)} days`;
}
