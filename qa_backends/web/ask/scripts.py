"""What the browser does by itself: keep the address, and over a reload its visit and what is too long for it; dim a
result whose question was changed, and keep unfolded what was; end a search that would take the place of what is typed;
ask by Ctrl+Enter; scroll to what was asked, and a long text to its answer.
"""

from __future__ import annotations

SET_ADDRESS = """address => {
  if (!address) return;
  const {link, key, question, context} = JSON.parse(address);
  const wanted = new URLSearchParams(link.slice(1)), kept = new URLSearchParams(location.search);
  for (const name of ['__theme', 'view']) if (kept.has(name)) wanted.set(name, kept.get(name));
  history.replaceState(null, '', '?' + wanted);
  const form = wanted.has('c') ? {} : {linked: wanted.get('q'), question, context};
  try {
    sessionStorage.setItem('qa-kept', JSON.stringify({key, ...form}));
  } catch {} // where the browser keeps nothing, a reload asks again
}"""
KEPT = """ticket => {
  let kept = {};
  try {
    kept = JSON.parse(sessionStorage.getItem('qa-kept') || '{}');
  } catch {}
  const same = kept.linked === new URLSearchParams(location.search).get('q');
  return [ticket, ...(same ? [kept.question, kept.context] : ['', '']), kept.key || ''];
}"""
"""The question and the text that the address had no room for, if it is this tab that asked, and the key to its visit:
all stay in the browser."""

ONCE_SHOWN = """async (filled, before) => {
  const {ticket, backends, said} = JSON.parse(filled);
  if (ticket <= before) return before; // nothing was filled in
  function shown() {
    const boxes = [...document.querySelectorAll('#qa-backends input')]; // none where the choices are folded
    const right = boxes.every(each => each.checked === backends.includes(each.name));
    return right && document.querySelector('#qa-options > button')?.textContent.includes(said);
  }
  for (let tries = 0; tries < 100 && !shown(); tries++) await new Promise(done => setTimeout(done, 50));
  return ticket;
}"""
"""The ticket, once the form shows what was filled in: a busy browser takes its time, and until then would send what the
form held before. The line over the choices is the server's, of what the form sent it. After five seconds the ticket is
raised all the same, and the server says what it makes of the form."""

LISTEN = """let changed = false; // whether the form holds something else than what was asked last
function dim() {
  const parts = '#qa-result .qa-result:has(.qa-race), #qa-marked .qa-text, #qa-marked .qa-legend';
  if (changed) for (const each of document.querySelectorAll(parts)) each.classList.add('qa-stale');
}
document.addEventListener('input', event => {
  if (!event.target.closest('#qa-form') || event.target.closest('#qa-own')) return;
  changed = true;
  dim();
  // A question that is looked for would take the place of what is being typed.
  if (document.querySelector('#qa-result .qa-looking')) document.querySelector('#qa-cancel')?.click();
});
document.addEventListener('keydown', event => {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || !event.target.closest('#qa-context')) return;
  event.preventDefault();
  document.querySelector('#qa-ask').click();
});
// What was unfolded stays so: every drawing would shut it.
const unfolded = new Set();
function rows() { return [...document.querySelectorAll('#qa-result .qa-race details')]; }
document.addEventListener('click', event => {
  const row = event.target.closest('#qa-result summary')?.parentElement;
  if (row) unfolded[row.open ? 'delete' : 'add'](rows().indexOf(row));
});
new MutationObserver(() => {
  rows().forEach((row, number) => { if (unfolded.has(number) && !row.open) row.open = true; });
  if (!document.querySelector('#qa-result .qa-asked')) return dim();
  changed = false;
  unfolded.clear();
  // Who chose backends far down would see nothing of what they asked.
  document.querySelector('#qa-options button.label-wrap.open')?.click();
  setTimeout(() => {
    const result = document.querySelector('#qa-result .qa-headline') ?? document.querySelector('#qa-result');
    const shown = result.getBoundingClientRect();
    if (shown.top < 0 || shown.bottom > innerHeight) scrollTo({top: 0});
  }, 200);
}).observe(document.querySelector('#qa-result'), {childList: true, subtree: true});
new MutationObserver(() => {
  dim();
  const box = document.querySelector('#qa-marked .qa-text'), mark = box && box.querySelector('mark');
  if (mark) box.scrollTop = mark.offsetTop - box.offsetTop - box.clientHeight / 3;
}).observe(document.querySelector('#qa-marked'), {childList: true, subtree: true});"""
