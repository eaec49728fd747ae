//! A conversation on the page: sign in, write, watch the reply being written, come back to it.

use super::Browser;
use crate::harness::{Model, Setup, eventually};

/// From the link to an answer; the words stand while the model is still held, and a tab that is opened in the middle shows all of them.
///
/// Proves USE-2, USE-3, USE-25, USE-26, CHN-2.
#[tokio::test]
async fn a_reply_is_seen_while_it_is_written_also_by_a_tab_opened_in_the_middle() {
  let (model, hold) = Model::holding("a story", "Once upon a time ", "there was an end.").await;
  let product = Setup::new().await.model(&model).start().await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  browser.find("[data-testid=empty]").await;
  browser.say("Tell me a story").await;
  let shown = browser.shows("the beginning", |shown| shown.iter().any(|entry| entry.role == "AGENT" && entry.text == "Once upon a time")).await;
  assert_eq!(shown.iter().map(|entry| (entry.role.as_str(), entry.status.as_str())).collect::<Vec<_>>(), [("OWNER", "PENDING"), ("AGENT", "WRITING")]);
  browser.says("[data-testid=standing]", "writing").await;

  browser.open_tab(&product.url).await;
  browser.shows("all text so far", |shown| shown.iter().any(|entry| entry.status == "WRITING" && entry.text == "Once upon a time")).await;

  hold.release();
  for tab in [1, 0] {
    browser.go_to_tab(tab).await;
    let shown = browser.shows_message("AGENT", "POSTED", "Once upon a time there was an end.").await;
    assert_eq!(shown.iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>(), ["Tell me a story", "Once upon a time there was an end."]);
    assert_eq!(shown[0].status, "ANSWERED");
    browser.says("[data-testid=standing]", "Ready").await;
  }
}

/// Before the first word there are three dots.
///
/// Proves CHN-2, USE-26.
#[tokio::test]
async fn three_dots_stand_for_a_reply_without_words_yet() {
  let model = Model::silent().await;
  let hold = pa_model::rehearsal::Hold::new();
  model.script.queue(pa_model::rehearsal::Reply::text("the words").held_from_the_start(&hold));
  let product = Setup::new().await.model(&model).start().await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  browser.say("hello").await;
  browser.find("[data-role=AGENT][data-status=WRITING] [data-testid=preparing]").await;
  let (owner, agent) = (browser.place("[data-role=OWNER] .bubble").await, browser.place("[data-role=AGENT] .bubble").await);
  assert!(agent.0 < owner.0, "the dots are at the left: {agent:?} {owner:?}");
  hold.release();
  browser.shows_message("AGENT", "POSTED", "the words").await;
  browser.gone("[data-testid=preparing]").await;
}

/// A reload shows the same, and older messages come by pages, in the same order.
///
/// Proves RUN-10, RUN-28, USE-25.
#[tokio::test]
async fn a_reload_shows_the_same_and_older_messages_come_by_pages() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  for n in 1..=40 {
    owner.send(&format!("message {n}")).await;
  }
  let whole: Vec<String> = owner.settled().await.into_iter().map(|message| message.id).collect();
  assert_eq!(whole.len(), 80);
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  let newest = browser.shows("the newest", |shown| shown.last().is_some_and(|entry| entry.text == "re: message 40")).await;
  assert!(newest.len() < whole.len(), "not everything at once: {}", newest.len());
  assert_eq!(newest.iter().map(|entry| &entry.id).collect::<Vec<_>>(), whole[whole.len() - newest.len()..].iter().collect::<Vec<_>>());

  // Going up brings the rest, by itself or at a press.
  eventually("all older messages are there", async || {
    browser.run("document.querySelector('[data-testid=messages]').scrollTop = 0; document.querySelector('[data-testid=load-older]')?.click()").await;
    (browser.shown().await.len() == whole.len()).then_some(())
  })
  .await;
  assert_eq!(browser.shown().await.into_iter().map(|entry| entry.id).collect::<Vec<_>>(), whole);

  browser.reload().await;
  let again = browser.shows("the newest again", |shown| shown.last().is_some_and(|entry| entry.text == "re: message 40")).await;
  assert_eq!(again.last(), newest.last());
  assert_eq!(again.iter().map(|entry| &entry.id).collect::<Vec<_>>(), whole[whole.len() - again.len()..].iter().collect::<Vec<_>>());
}

/// Two tabs send at once: both show the same, in the order of the log.
///
/// Proves RUN-10, REP-32.
#[tokio::test]
async fn two_tabs_that_send_at_once_show_the_same() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  browser.open_tab(&product.url).await;
  for n in 0..3 {
    for tab in [0, 1] {
      browser.go_to_tab(tab).await;
      browser.say(&format!("tab {tab} says {n}")).await;
    }
  }
  let owner = product.owner();
  let messages = eventually("all six are answered", async || Some(owner.settled().await).filter(|messages| messages.len() == 12)).await;
  let expected: Vec<(String, String)> = messages.into_iter().map(|message| (message.id, message.text)).collect();
  for tab in [0, 1] {
    browser.go_to_tab(tab).await;
    let done = |shown: &[super::chromium::Shown]| shown.len() == 12 && shown.iter().all(|entry| matches!(entry.status.as_str(), "ANSWERED" | "POSTED"));
    let shown = browser.shows("all twelve", done).await;
    assert_eq!(shown.into_iter().map(|entry| (entry.id, entry.text)).collect::<Vec<_>>(), expected, "tab {tab}");
  }
}

/// A stop keeps what was written; a failed message can be tried again; both are said under the message.
#[tokio::test]
async fn a_reply_is_stopped_and_a_failed_message_tried_again() {
  let (model, hold) = Model::holding("a long one", "These words stay", " and these never come").await;
  model.script.queue(pa_model::rehearsal::Reply::status(400));
  let product = Setup::new().await.model(&model).start().await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  browser.say("refused").await;
  browser.find("[data-testid=notice][data-code=MODEL_REFUSED]").await;
  browser.find("[data-testid=status-failed]").await;
  browser.click("[data-testid=retry]").await;
  browser.shows_message("AGENT", "POSTED", "re: refused").await;
  browser.gone("[data-testid=status-failed]").await;

  browser.say("a long one").await;
  browser.shows_message("AGENT", "WRITING", "These words stay").await;
  browser.say("and this waits").await;
  browser.find("[data-testid=status-waiting]").await;
  browser.click("[data-testid=stop]").await;
  browser.shows_message("AGENT", "STOPPED", "These words stay").await;
  // Said once, under the words that came, with the way back beside it.
  browser.says("[data-testid=status-stopped]", "You stopped the reply here.").await;
  let said =
    browser.run("return [...document.querySelectorAll('.under')].map((line) => line.innerText).filter((line) => /stop|complete/i.test(line)).length").await;
  assert_eq!(said, 1);
  browser.shows_message("AGENT", "POSTED", "re: and this waits").await;
  browser.gone("[data-testid=stop]").await;
  hold.release();
}

/// A screen reader hears a finished reply as plain words, and nothing of one that is being written.
#[tokio::test]
async fn a_screen_reader_hears_finished_replies_without_marks() {
  let (model, hold) = Model::holding("aloud", "**Read** `this`", " and [that](https://example.org)").await;
  let product = Setup::new().await.model(&model).start().await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  browser.say("aloud").await;
  browser.shows("the beginning", |shown| shown.iter().any(|entry| entry.status == "WRITING" && entry.text == "Read this")).await;
  let heard = async || browser.run("return document.querySelector('[data-testid=announcer]').textContent").await;
  assert_eq!(heard().await, "");
  hold.release();
  browser.shows_message("AGENT", "POSTED", "Read this and that").await;
  eventually("it is read aloud", async || (heard().await == "Agent: Read this and that").then_some(())).await;
}
