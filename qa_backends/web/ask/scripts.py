"""What the browser does by itself: keep the address, and over a reload its visit and a text too long for it; dim a
result whose question was changed; ask by Ctrl+Enter; scroll to what was asked, and a long text to its answer.
"""

from __future__ import annotations

SET_ADDRESS = """(address, context) => {
  if (!address) return;
  const {link, key} = JSON.parse(address);
  const wanted = new URLSearchParams(link.slice(1)), kept = new URLSearchParams(location.search);
  for (const name of ['__theme', 'view']) if (kept.has(name)) wanted.set(name, kept.get(name));
  history.replaceState(null, '', '?' + wanted);
  const text = wanted.has('c') ? {} : {question: wanted.get('q'), context};
  sessionStorage.setItem('qa-kept', JSON.stringify({key, ...text}));
}"""
KEPT = """ticket => {
  const kept = JSON.parse(sessionStorage.getItem('qa-kept') || '{}');
  const same = kept.question === new URLSearchParams(location.search).get('q');
  return [ticket, same ? kept.context : '', kept.key || ''];
}"""
"""The text that the address had no room for, if it is this tab that asked, and the key to its visit: both stay in the
browser."""

LISTEN = """document.addEventListener('input', event => {
  if (!event.target.closest('#qa-form')) return;
  for (const each of document.querySelectorAll('#qa-result .qa-result, #qa-marked .qa-text, #qa-marked .qa-legend'))
    each.classList.add('qa-stale');
});
document.addEventListener('keydown', event => {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || !event.target.closest('#qa-context')) return;
  event.preventDefault();
  document.querySelector('#qa-ask').click();
});
// Who chose backends far down would see nothing of what they asked.
new MutationObserver(() => {
  if (!document.querySelector('#qa-result .qa-asked')) return;
  document.querySelector('#qa-options button.label-wrap.open')?.click();
  setTimeout(() => {
    const shown = document.querySelector('#qa-result .qa-headline').getBoundingClientRect();
    if (shown.top < 0 || shown.bottom > innerHeight) scrollTo({top: 0});
  }, 200);
}).observe(document.querySelector('#qa-result'), {childList: true, subtree: true});
new MutationObserver(() => {
  const box = document.querySelector('#qa-marked .qa-text'), mark = box && box.querySelector('mark');
  if (mark) box.scrollTop = mark.offsetTop - box.offsetTop - box.clientHeight / 3;
}).observe(document.querySelector('#qa-marked'), {childList: true, subtree: true});"""
