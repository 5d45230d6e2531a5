// One trace: its head, the outline of its steps, and the steps.
const MISTAKES = ["real", "user_correction"];
let current = null;

const stepLink = index => el("a", { href: `#/${current.key}/${index}` }, `step ${index}`);
const mistakes = row => MISTAKES.reduce((sum, name) => sum + (row.verdicts[name] || 0), 0);

function showTrace(trace) {
  current = trace;
  const main = $("main");
  main.replaceChildren(head(trace), el("div", { klass: "body" }, outline(trace), steps(trace)));
  main.scrollTop = 0;
}

function fact(name, value) {
  return value && value.length !== 0 ? el("div", {}, el("dt", {}, name), el("dd", {}, value)) : null;
}

function head(trace) {
  const tokens = trace.tokens, kinds = trace.kinds;
  const special = Object.keys(kinds).filter(kind => kind !== "main").map(kind => `${kinds[kind]} ${kind}`);
  if (trace.abandoned) special.push(`${trace.abandoned} abandoned`);
  const children = rows.filter(row => row.parent === trace.id);
  const sites = trace.steps.flatMap(step => step.sites);
  return el("header", { klass: "head" },
    el("a", { klass: "back", href: "#/" }, "← all traces"),
    el("h1", {}, trace.title || "(nothing was said)"),
    el("p", { klass: "id" }, trace.id),
    el("dl", { klass: "facts" },
      fact("format", [trace.format, trace.app && trace.app !== trace.format ? ` · ${trace.app} ${trace.version}` : trace.version && ` · ${trace.version}`]),
      fact("model", trace.models.join(", ")),
      fact("time", trace.first && `${moment(trace.first)}${span(trace.first, trace.last) && ` · ${span(trace.first, trace.last)}`}`),
      fact("steps", `${trace.steps.length}${special.length ? ` (${special.join(", ")})` : ""}`),
      fact("calls and results", `${trace.calls} / ${trace.results}`),
      fact("tokens in / out", tokens.input || tokens.output ? `${number(tokens.input)} / ${number(tokens.output)}${tokens.cached ? ` · ${number(tokens.cached)} cached` : ""}` : ""),
      fact("context", Object.entries(trace.fidelity).map(([name, n]) => `${name} ${n}`).join(", ")),
      fact("task", trace.task),
      fact("use", trace.evaluation && "evaluation: never trained on"),
      fact("parent", trace.parent && (byId.has(trace.parent) ? el("a", { href: `#/${byId.get(trace.parent)}` }, trace.parent) : trace.parent)),
      fact("subagents", children.map((row, n) => [n ? ", " : "", el("a", { href: `#/${row.key}` }, row.title.slice(0, 40) || row.id)])),
      fact("source", trace.path),
    ),
    sites.length > 0 && el("ul", { klass: "sitelist", "aria-label": "Error sites" }, sites.map(site =>
      el("li", {}, el("a", { klass: `chip ${site.verdict}`, href: `#/${trace.key}/${site.step}`, title: `${words(site.verdict)}, rule ${site.rule}` }, `${site.step} ${words(site.kind)}`)))),
  );
}

function label(step) {
  const calls = step.blocks.filter(one => one.type === "tool_call");
  if (calls.length === 1) return [calls[0].name, " ", el("span", {}, subject(calls[0]))];
  if (calls.length) return calls.map(one => one.name).join(", ");
  const text = step.blocks.filter(one => one.type === "text").map(one => one.text).join(" ").trim();
  return text.slice(0, 80) || (step.blocks.length ? step.blocks[0].type.replace("_", " ") : "(empty)");
}

// What a call is about: its first text of some length among the arguments, a path without its folders.
function subject(call) {
  const texts = Object.values(call.arguments || {}).flat().filter(value => typeof value === "string" && value.trim());
  const first = texts.find(text => text.length > 8) || texts[0] || "";
  return first.split("\n")[0].replace(/^(\/[^\s\/]+)+\/(?=[^\s\/]+$)/, "").slice(0, 60);
}

function worst(step) {
  const order = ["real", "user_correction", "user_followup", "user_stop"];
  const found = order.find(name => step.sites.some(site => site.verdict === name));
  return found || (step.sites.length ? "quiet" : "");
}
const COLOURS = { real: "var(--bad)", user_correction: "var(--warn)", user_followup: "var(--user)", user_stop: "var(--user)", quiet: "var(--faint)" };

function mark(step) {
  const kind = worst(step);
  if (!kind) return el("span");
  const dot = el("span", { klass: "dot", title: step.sites.map(site => `${words(site.verdict)}: ${words(site.kind)}`).join("\n") });
  dot.style.color = COLOURS[kind];
  return dot;
}

const placeOf = step => `${step.depth ? " aside" : ""}${step.abandoned ? " left" : ""}`.trim();

function outline(trace) {
  return el("aside", { klass: "outline", id: "outline", "aria-label": "Steps" }, trace.steps.map(step =>
    el("a", { href: `#/${trace.key}/${step.index}`, "data-step": step.index, klass: placeOf(step), pad: `${.5 + .7 * Math.min(step.depth, 8)}rem` },
      el("span", { klass: "nr" }, step.index), el("span", { klass: "what" }, label(step)), mark(step))));
}

function steps(trace) {
  const parts = [];
  for (const step of trace.steps) {
    parts.push(...trace.events.filter(event => event.before_step === step.index && !isShown(trace, step, event)).map(eventLine), stepBox(trace, step));
  }
  const known = new Set(trace.steps.map(step => step.index));
  parts.push(...trace.events.filter(event => !known.has(event.before_step)).map(eventLine));
  if (trace.orphans.length) parts.push(el("details", { klass: "step" }, el("summary", {}, `${count(trace.orphans.length, "result")} of calls that the source does not hold`), trace.orphans.map(result)));
  return el("section", { klass: "steps", id: "steps", "aria-label": "Steps of the trace" }, parts);
}

// A text of the user that stands among the new messages of its step need not stand there twice.
function isShown(trace, step, event) {
  const said = step.new.flatMap(id => trace.messages[id] ? trace.messages[id].blocks : []).filter(one => one.type === "text");
  return event.kind === "user_text" && said.some(one => one.text.includes(event.text.trim()));
}

function eventLine(event) {
  const place = event.record >= 0 ? `record ${event.record}` : "";
  return el("div", { klass: "event" }, el("b", {}, words(event.kind)), event.text ? folded(event.text, "prose") : el("span", {}, place));
}

function stepBox(trace, step) {
  const tokens = step.tokens;
  const used = tokens.input || tokens.output ? `${number(tokens.input)} in${tokens.cached ? ` (${number(tokens.cached)} cached)` : ""}, ${number(tokens.output)} out` : "";
  const first = step.parent === null;
  return el("article", { klass: `step ${placeOf(step)} ${MISTAKES.includes(worst(step)) ? "wrong" : ""}`, id: `s${step.index}`, depth: step.depth, tabindex: "-1", "aria-label": `step ${step.index}` },
    el("header", {},
      el("span", { klass: "nr" }, `Step ${step.index}`),
      step.kind !== "main" && el("span", { klass: "chip" }, step.kind),
      step.agent && el("span", { klass: "chip" }, step.agent),
      step.abandoned && el("span", { klass: "chip" }, "abandoned"),
      step.parent !== null && step.parent !== step.index - 1 && el("span", {}, "goes on from ", stepLink(step.parent)),
      step.fidelity !== "exact" && el("span", { klass: "chip", title: step.missing.length ? `missing: ${step.missing.join(", ")}` : "" }, step.fidelity),
      el("span", {}, step.model), el("span", {}, step.stop),
      step.feedback.map(said => el("span", { klass: `chip ${said.value === 1 ? "good" : said.value === null ? "" : "error"}`, title: said.source || "" }, `${words(said.kind)} ${said.value ?? ""} ${said.text || ""}`)),
      el("span", { klass: "push number" }, el("span", { title: JSON.stringify(step.usage) }, used), el("time", { datetime: step.time, title: moment(step.time) }, clock(step.time)))),
    given(trace, step, first),
    step.blocks.length ? step.blocks.map(one => block(one, step)) : el("p", { klass: "faint" }, "(an empty answer)"),
    step.sites.filter(site => !step.blocks.some(one => one.type === "tool_call" && one.id === site.call)).map(site => siteBox(site, "")),
    step.others.length > 0 && el("details", {}, el("summary", {}, count(step.others.length, "other answer")), step.others.map(other =>
      el("div", { klass: "said assistant" }, el("div", { klass: "who" }, other.teacher ? `teacher ${other.teacher}` : "regenerated", " ", other.model), other.blocks.map(one => block(one, null))))),
  );
}

function given(trace, step) {
  const parts = step.new.map(id => trace.messages[id]).filter(Boolean).map(message => {
    const said = el("div", { klass: `said ${message.role}` }, el("div", { klass: "who" }, message.role), message.blocks.map(one => block(one, null)));
    return message.role === "system" || message.role === "developer" ? el("details", {}, el("summary", {}, `${message.role} message`), said) : said;
  });
  const before = trace.steps.find(other => other.index === step.parent);
  if (step.toolset && !(before && before.toolset === step.toolset)) {
    const tools = trace.toolsets[step.toolset];
    parts.push(el("details", {}, el("summary", {}, `${count(tools.length, "tool")} offered: ${tools.map(tool => tool.name).join(", ").slice(0, 120)}`), tools.map(tool =>
      el("div", { klass: "said" }, el("code", {}, tool.name), tool.inferred && el("span", { klass: "chip" }, "inferred from calls"), tool.description && folded(tool.description, "prose"), tool.parameters && folded(pretty(tool.parameters), "")))));
  }
  if (parts.length > 8) return el("details", {}, el("summary", {}, `${count(parts.length, "new message")} in the context`), parts);
  return parts;
}
