"""What the browser does by itself: keep the address, and over a reload its visit and what is too long for it; dim a
result that is of something else than the form holds, and keep unfolded what was; end a search that would take the place
of what is typed; ask by Ctrl+Enter; scroll to what was asked, and a long text to its answer.
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
KEPT = """() => {
  let kept = {};
  try {
    kept = JSON.parse(sessionStorage.getItem('qa-kept') || '{}');
  } catch {}
  const same = kept.linked === new URLSearchParams(location.search).get('q');
  return [...(same ? [kept.question, kept.context] : ['', '']), kept.key || ''];
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

FORM_CHANGED = "(...form) => { document.dispatchEvent(new CustomEvent('qa-form', {detail: form})); return []; }"
"""Whoever changed it: a person, an example, a file, a model of one's own."""

LISTEN = r"""// asked.key of what the form holds: a CRC-32, since browsers keep their better sums for pages under TLS.
function key([context, question, backends, family, device]) {
  const asked = [family, device, [...backends].sort().join(), question, context].join('|');
  let sum = -1;
  for (const byte of new TextEncoder().encode(asked.replace(/\p{Surrogate}/gu, '?'))) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (0xEDB88320 & -(sum & 1));
  }
  return (~sum >>> 0).toString(16);
}
let held = ''; // the key to what the form holds, once that has changed
function dim() {
  for (const each of document.querySelectorAll('[data-asked]'))
    each.classList.toggle('qa-stale', held !== '' && each.dataset.asked !== held);
}
document.addEventListener('qa-form', event => {
  held = key(event.detail);
  dim();
});
document.addEventListener('input', event => {
  if (!event.target.closest('#qa-form') || event.target.closest('#qa-own')) return;
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
// What is under way says so; its first drawing may never be seen, where the next one comes within a frame.
const UNDER_WAY = '#qa-result .qa-result:has(.qa-asked, header [role=status])';
let begun = ''; // the key to what is under way
new MutationObserver(() => {
  rows().forEach((row, number) => { if (unfolded.has(number) && !row.open) row.open = true; });
  dim();
  const before = begun;
  begun = document.querySelector(UNDER_WAY)?.dataset.asked ?? '';
  if (!begun || begun === before) return;
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
