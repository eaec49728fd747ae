//! The link breaks: the page says so, keeps what is written, and when the backend is back nothing is missing and nothing is doubled.

use super::Browser;
use crate::harness::{Model, Setup};

/// The backend dies while a reply is written, the owner writes on, and it comes back.
///
/// Proves BB-63, REP-31, REP-34.
#[tokio::test]
async fn bb_63_the_page_recovers_after_the_backend_died_with_nothing_doubled() {
  let (model, hold) = Model::holding("before", "begun ", "and done").await;
  let mut product = Setup::new().await.model(&model).start().await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  browser.say("before").await;
  browser.shows_message("AGENT", "WRITING", "begun").await;
  product.kill9();
  browser.find("[data-testid=link-note]").await;
  browser.says("[data-testid=standing]", "Not connected").await;
  browser.say("meanwhile").await;
  browser.shows_message("outgoing", "SENDING", "meanwhile").await;
  hold.release();
  product.start_again().await;
  browser.gone("[data-testid=link-note]").await;
  browser.shows_message("AGENT", "POSTED", "re: meanwhile").await;
  let shown = browser.shows_message("AGENT", "POSTED", "begun and done").await;
  let texts: Vec<_> = shown.iter().map(|entry| entry.text.as_str()).collect();
  assert_eq!(texts, ["before", "begun and done", "meanwhile", "re: meanwhile"].map(|text| text), "each once");
  browser.reload().await;
  assert_eq!(browser.shows("the same after a reload", |again| again.len() == 4).await, shown);
  assert_eq!(product.dump().of("MessageAdmitted").len(), 2, "reconnecting sent nothing");
}

/// The page is loaded while the backend is away, and opens by itself when it comes.
#[tokio::test]
async fn a_page_that_lost_its_backend_keeps_the_draft_and_opens_again_by_itself() {
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).start().await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  browser.write("half a sent").await;
  product.kill9();
  browser.find("[data-testid=link-note]").await;
  product.start_again().await;
  browser.gone("[data-testid=link-note]").await;
  browser.reload().await;
  assert_eq!(browser.find("#composer").await.prop("value").await.unwrap().as_deref(), Some("half a sent"));
  browser.say("ence").await;
  browser.shows_message("AGENT", "POSTED", "re: half a sentence").await;
}

/// Without a session there is the sign-in screen, not an error.
#[tokio::test]
async fn whoever_is_not_signed_in_sees_how_to_sign_in() {
  let product = Setup::new().await.start().await;
  let browser = Browser::start().await;
  browser.client.goto(&product.url).await.unwrap();
  browser.find("[data-testid=signed-out]").await;
  browser.client.goto(&product.sign_in).await.unwrap();
  browser.click("form button").await;
  browser.find("#composer").await;
  browser.find("[data-testid=rehearsal-badge]").await;
}
