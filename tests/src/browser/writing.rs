//! What the composer does beyond plain text: files, long texts, copying, and no trace of how the agent works.

use pa_model::rehearsal::{Hold, Reply};
use serde_json::json;

use super::Browser;
use crate::harness::{Model, Setup};

/// The plus button takes files; they are shown, served back, and the model reads the text of one.
///
/// Proves CHN-3.
#[tokio::test]
async fn a_file_is_attached_shown_and_read() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let folder = tempfile::tempdir().unwrap();
  let (note, other) = (folder.path().join("note.txt"), folder.path().join("sheet.xlsx"));
  std::fs::write(&note, "the secret ingredient is patience").unwrap();
  std::fs::write(&other, [0x50, 0x4b, 3, 4]).unwrap();
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  assert_eq!(browser.find("button[aria-label='Attach files']").await.tag_name().await.unwrap(), "button");
  let input = browser.find("[data-testid=file-input]").await;
  input.send_keys(&format!("{}\n{}", note.display(), other.display())).await.unwrap();
  browser
    .find("[data-testid=draft-file][data-state=done]:nth-of-type(2), [data-testid=draft-file][data-state=done] ~ [data-testid=draft-file][data-state=done]")
    .await;
  browser.say("what is in it?").await;
  // It echoes what it was shown of the files too.
  browser.shows("the answer", |shown| shown.iter().any(|entry| entry.status == "POSTED" && entry.text.starts_with("re: what is in it?"))).await;
  browser.says("[data-testid=file]", "note.txt").await;
  browser.gone("[data-testid=draft-file]").await;

  let request = model.script.requests().pop().unwrap().body.to_string();
  assert!(request.contains("the secret ingredient is patience"), "the text is read");
  assert!(request.contains("sheet.xlsx") && request.contains("can't be read yet"), "the other file is named: {request}");
  browser.reload().await;
  browser.says("[data-testid=file]", "note.txt").await;
  let message = product.owner().messages().await.remove(0);
  let url = message.attachments[0]["url"].as_str().unwrap().to_owned();
  let served = product.owner().get(&url).await.unwrap();
  assert_eq!(served.headers()["x-content-type-options"], "nosniff");
  assert_eq!(served.text().await.unwrap(), "the secret ingredient is patience");
}

/// The copy button beside a bubble comes with the pointer and with the keyboard.
///
/// Proves USE-29.
#[tokio::test]
async fn a_message_is_copied_from_beside_its_bubble() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  browser.say("copy me").await;
  browser.shows_message("AGENT", "POSTED", "re: copy me").await;
  let copy = "[data-role=AGENT] [data-testid=copy]";
  let beside = "[data-role=AGENT] .beside:has([data-testid=copy])";
  let (bubble, button) = (browser.place("[data-role=AGENT] .bubble").await, browser.place(copy).await);
  assert!(button.0 >= bubble.0 + bubble.2, "it is at the right of the bubble: {bubble:?} {button:?}");
  browser.run("document.querySelector('#composer').focus()").await;
  let hidden = browser.style(beside, "opacity").await;
  browser.run(&format!("document.querySelector({copy:?}).focus()")).await;
  crate::harness::eventually("the button shows with the keyboard", async || (browser.style(beside, "opacity").await == "1").then_some(())).await;
  assert_eq!(hidden, "0", "it is not there all the time");
  // The browser of a test may not use the clipboard unless the page is allowed to.
  browser.run("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }").await;
  browser.click(copy).await;
  crate::harness::eventually("it is copied", async || (browser.run("return window.copied ?? null").await == "re: copy me").then_some(())).await;
}

/// A step is named above the composer while it runs; of the tool, its name and the thinking nothing stays.
///
/// Proves USE-26, USE-27, USE-28, RUN-30.
#[tokio::test]
async fn a_step_is_named_above_the_composer_and_no_trace_stays() {
  let model = Model::silent().await;
  let (first, second) = (Hold::new(), Hold::new());
  model.script.queue(Reply::new().think("INNER WORDS").call("call_1", "pa_history", "{}").hold(&first));
  model.script.queue(Reply::new().think("MORE INNER WORDS").say("Here it is.").hold(&second));
  let product = Setup::new().await.model(&model).start().await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  browser.say("what did I say?").await;
  first.reached().await;
  let held = product.hold_conversation().await;
  first.release();
  browser.says("[data-testid=step]", "Looking through earlier messages").await;
  held.rollback().await.unwrap();
  browser.shows_message("AGENT", "WRITING", "Here it is.").await;
  second.release();
  browser.shows_message("AGENT", "POSTED", "Here it is.").await;
  let page = browser.run("return document.body.innerText").await;
  let page = page.as_str().unwrap();
  for inner in ["INNER WORDS", "pa_history", "call_1", "execution"] {
    assert!(!page.contains(inner), "{inner}: {page}");
  }
}

/// The page tells the browser's zone once, and then the owner's choice stays.
///
/// Proves RUN-41, RUN-42.
#[tokio::test]
async fn the_zone_of_the_browser_is_kept_on_first_use_and_not_over_a_choice() {
  let product = Setup::new().await.start().await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  let owner = product.owner();
  let zone = async || owner.ask("{ settings { timeZone } }", json!({})).await["settings"]["timeZone"].as_str().unwrap().to_owned();
  let own = browser.run("return Intl.DateTimeFormat().resolvedOptions().timeZone").await.as_str().unwrap().to_owned();
  crate::harness::eventually("the zone is kept", async || (zone().await == own).then_some(())).await;

  let version = owner.ask("{ settings { version } }", json!({})).await["settings"]["version"].clone();
  let mutation = "mutation($input: UpdateSettingsInput!) { updateSettings(input: $input) { userErrors { code } } }";
  owner.ask(mutation, json!({ "input": { "requestKey": "zone", "version": version, "timeZone": "Asia/Tokyo" } })).await;
  browser.reload().await;
  browser.say("hello").await;
  owner.settled().await;
  assert_eq!(zone().await, "Asia/Tokyo", "what was chosen is not overwritten");
}
