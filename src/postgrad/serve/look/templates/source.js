// Where rows and details come from: this file itself, or the server that the page came from.
const embedded = JSON.parse($("data").textContent);
const rows = [];
const byId = new Map();

function addRows(more) {
  for (const row of more) {
    rows.push(row);
    byId.set(row.id, row.key);
  }
}

async function unpacked(key) {
  const holder = $("d" + key);
  if (!holder) return null;
  const bytes = Uint8Array.from(atob(holder.textContent.trim()), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

const fromFile = {
  async start(changed) {
    addRows(embedded.rows);
    changed({ done: true, fault: "" });
  },
  async trace(key) {
    const text = await unpacked(key);
    return text && JSON.parse(text);
  },
  async search(words) {
    const wanted = JSON.stringify(words).slice(1, -1).toLowerCase();
    const found = [];
    for (const row of rows) {
      const text = await unpacked(row.key);
      if (text && text.toLowerCase().includes(wanted)) found.push(row.key);
    }
    return found;
  },
};

const fromServer = {
  async start(changed) {
    for (let done = false; !done;) {
      const answer = await (await fetch(`api/rows?from=${rows.length}`)).json();
      addRows(answer.rows);
      done = answer.fault || (answer.done && !answer.rows.length);
      changed({ done, fault: answer.fault });
      if (!done && !answer.done) await new Promise(wake => setTimeout(wake, 400));
    }
  },
  async trace(key) {
    const answer = await fetch(`api/trace/${key}`);
    return answer.ok ? answer.json() : null;
  },
  async search(words) {
    return (await fetch(`api/search?words=${encodeURIComponent(words)}`)).json();
  },
};
const source = embedded.live ? fromServer : fromFile;
