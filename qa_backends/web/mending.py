"""What Gradio's page leaves out for people who listen to it, write from right to left, or come back to a tab, added in
the browser.

Gradio builds its parts again and again, so this looks after every change of the page, once a frame.
"""

from __future__ import annotations

MEND = """<script>
(() => {
  function set(selector, name, value) {
    for (const each of document.querySelectorAll(selector)) {
      const wanted = value(each);
      if (each.getAttribute(name) !== wanted) each.setAttribute(name, wanted);
    }
  }

  function mend() {
    set('textarea, input[type=text]', 'dir', () => 'auto');
    set('button.label-wrap', 'aria-expanded', each => String(each.classList.contains('open')));
    set('fieldset', 'aria-label', each => each.querySelector('[data-testid=block-info]')?.textContent.trim() ?? '');
    set('input[role=listbox]', 'role', () => 'combobox');
    set('.js-plotly-plot', 'role', () => 'group');
    set('.js-plotly-plot', 'aria-label', each => each.querySelector('.gtitle')?.textContent ?? 'Chart');
    fit();
  }

  // What Plotly drew on a tab that is not shown, or did not draw anew there for another window, has not its place's
  // width. Plotly is told once for each width: a chart that kept its own would be drawn without end.
  const told = new WeakMap();
  function fit() {
    let wrong = false;
    for (const each of document.querySelectorAll('.js-plotly-plot')) {
      const drawn = each.querySelector('.main-svg')?.clientWidth, place = each.clientWidth;
      if (!place || drawn === place) {
        told.delete(each);
      } else if (drawn && told.get(each) !== place) {
        told.set(each, place);
        wrong = true;
      }
    }
    if (wrong) dispatchEvent(new Event('resize'));
  }

  // A verdict is said once, when it is final. Gradio replaces the result with every reading, so it is said elsewhere.
  const voice = Object.assign(document.createElement('p'), {className: 'qa-said'});
  voice.setAttribute('role', 'status');
  let measuring = false;

  function announce(result, headline) {
    const before = measuring;
    measuring = Boolean(result.querySelector('.qa-pending, .qa-status'));
    if (before && !measuring)
      voice.textContent = result.querySelector('header p b')?.innerText
        ?? [result.querySelector('h2'), headline].map(each => each.innerText).join(' ');
    if (!measuring) keepRoom();
  }

  // What is being measured takes the room of the last result (in frame.css), so that nothing below moves.
  function keepRoom() {
    for (const part of ['#qa-result', '#qa-result header', '.qa-headline', '.qa-race > li', '#qa-marked']) {
      const height = document.querySelector(part)?.offsetHeight ?? 0;
      document.body.style.setProperty('--room-' + part.match(/[a-z]+$/)[0], `${height}px`);
    }
  }

  let due = null;
  function soon() {
    due ??= requestAnimationFrame(() => {
      due = null;
      mend();
      const result = document.querySelector('#qa-result .qa-result'), headline = result?.querySelector('.qa-headline');
      if (headline) announce(result, headline);
    });
  }
  const watched = {subtree: true, childList: true, attributes: true, attributeFilter: ['class', 'dir', 'role']};
  new MutationObserver(soon).observe(document, watched);
  document.addEventListener('DOMContentLoaded', () => document.body.append(voice));

  // Browsers leave alone what is in sight by half.
  document.addEventListener('focusin', ({target}) => {
    const shown = target.closest('label') ?? target;
    if (target.matches(':focus-visible')) shown.scrollIntoView({block: 'nearest', inline: 'nearest'});
  });
})();
</script>"""
