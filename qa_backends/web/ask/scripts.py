"""What the browser does by itself: keep the address, dim a result whose question was changed, ask by Ctrl+Enter,
scroll a long text to its answer.
"""

from __future__ import annotations

SET_ADDRESS = """link => {
  if (!link) return;
  const wanted = new URLSearchParams(link.slice(1)), kept = new URLSearchParams(location.search);
  for (const name of ['__theme', 'view']) if (kept.has(name)) wanted.set(name, kept.get(name));
  history.replaceState(null, '', '?' + wanted);
}"""

LISTEN = """document.addEventListener('input', event => {
  if (!event.target.closest('#qa-form')) return;
  document.querySelectorAll('#qa-result .qa-result, #qa-marked > *').forEach(each => each.classList.add('qa-stale'));
});
document.addEventListener('keydown', event => {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || !event.target.closest('#qa-context')) return;
  event.preventDefault();
  document.querySelector('#qa-ask').click();
});
new MutationObserver(() => {
  const box = document.querySelector('#qa-marked .qa-text'), mark = box && box.querySelector('mark');
  if (mark) box.scrollTop = mark.offsetTop - box.offsetTop - box.clientHeight / 3;
}).observe(document.querySelector('#qa-marked'), {childList: true, subtree: true});
for (const box of document.querySelectorAll('#qa-context textarea, #qa-question textarea, #qa-question input'))
  box.dir = 'auto';"""
