// What was said: text, thinking, calls with their results and the sites that belong to them, media, unknown blocks.
const LINES = 14, LETTERS = 1400;

function folded(whole, klass) {
  const text = whole.replace(/^(\s*\n)+/, "").trimEnd();
  const tag = klass === "prose" || klass === "prose think" ? "div" : "pre";
  const lines = text.split("\n");
  if (lines.length <= LINES + 4 && text.length <= LETTERS * 1.3) return el(tag, { klass }, text);
  const short = lines.slice(0, LINES).join("\n").slice(0, LETTERS).trimEnd() + " …";
  const shown = el(tag, { klass }, short);
  const size = lines.length > LINES ? count(lines.length, "line") : count(text.length, "character");
  const button = el("button", { type: "button", "aria-expanded": "false" }, `Show all ${size}`);
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "true";
    shown.textContent = open ? short : text;
    button.setAttribute("aria-expanded", String(!open));
    button.textContent = open ? `Show all ${size}` : "Show less";
  });
  return el("div", { klass: "fold" }, shown, button);
}

const pretty = value => typeof value === "string" ? value : JSON.stringify(value, null, 2);

function block(one, step) {
  switch (one.type) {
    case "text": return one.text.trim() ? folded(one.text, "prose") : null;
    case "reasoning": return reasoning(one);
    case "tool_call": return call(one, step);
    case "tool_result": return result(one);
    case "media": return el("p", {}, el("span", { klass: "chip" }, `media: ${one.mime}`), " ", el("code", { klass: "faint" }, one.uri || one.sha256.slice(0, 16)));
    default: return el("details", {}, el("summary", {}, `block of type “${one.block_type || one.type}”`), folded(pretty(one.raw ?? one), ""));
  }
}

function reasoning(one) {
  const sealed = one.encrypted ? "encrypted thinking" : one.signature ? "signed thinking without text" : "";
  if (!one.text) return sealed ? el("p", {}, el("span", { klass: "chip" }, sealed)) : null;
  return el("details", {}, el("summary", {}, `Thinking (${count(one.text.length, "character")})`), folded(one.text, "prose think"));
}

function call(one, step) {
  const given = one.arguments ? Object.entries(one.arguments) : [];
  const parts = [el("div", { klass: "name" }, one.name, el("span", { klass: "faint" }, one.provider_id || one.id))];
  if (one.parse_error) parts.push(el("div", { klass: "site real" }, `Arguments do not parse: ${one.parse_error}`, folded(one.arguments_raw, "")));
  else if (given.length) parts.push(el("dl", {}, given.map(([name, value]) => [el("dt", { title: name }, name), el("dd", {}, argument(value))])));
  const answer = step && step.results[one.id];
  if (answer) parts.push(result(answer));
  else if (step) parts.push(el("div", { klass: "result" }, el("span", { klass: "faint" }, "no result")));
  if (step) parts.push(...step.sites.filter(site => site.call === one.id).map(site => siteBox(site, answer ? answer.text.trim() : "")));
  return el("div", { klass: "call" }, parts);
}

function argument(value) {
  const text = pretty(value);
  return text.length < 90 && !text.includes("\n") ? el("code", {}, text) : folded(text, "");
}

function result(one) {
  const failed = one.is_error === true || (one.status && !["ok", "pending"].includes(one.status));
  const word = one.status && one.status !== "ok" ? one.status : one.is_error === true ? "error" : "result";
  const place = Number.isInteger(one.record) ? `record ${one.record}` : "";
  const head = el("div", { klass: "who" }, el("span", { klass: failed ? "chip error" : "" }, word), " ", place);
  return el("div", { klass: failed ? "result failed" : "result" }, head, one.text ? folded(one.text, "") : el("span", { klass: "faint" }, "(empty)"));
}

const words = verdict => verdict.replace(/_/g, " ");

function siteBox(site, shown) {
  const facts = [
    el("span", { klass: `chip ${site.verdict}` }, words(site.verdict)),
    el("b", {}, words(site.kind)),
    el("span", {}, `rule ${site.rule}`),
    Number.isInteger(site.record) && site.record >= 0 && el("span", {}, `evidence in record ${site.record}`),
    Number.isInteger(site.repeat_of) && el("span", {}, "repeats ", stepLink(site.repeat_of)),
    Number.isInteger(site.recovery_step) && el("span", {}, "recovered at ", stepLink(site.recovery_step)),
  ];
  return el("div", { klass: `site ${site.verdict}` }, el("div", { klass: "facts2" }, facts), site.text && site.text.trim() !== shown && folded(site.text, ""));
}
