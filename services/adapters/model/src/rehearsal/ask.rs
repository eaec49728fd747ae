//! What the rehearsal model understands of a request.

use serde_json::Value;

/// As far back as the rehearsal model remembers.
const EARLIER_MAX: usize = 20;
/// Prompt lines that name an attachment begin like this, in any letter case.
const ATTACHMENT_MARKS: [&str; 5] = ["[attachment", "attachment:", "<attachment", "[file", "[picture"];

/// The language that an answer is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
  English,
  Chinese,
}

/// The last message of the user and what surrounds it.
#[derive(Debug)]
pub(super) struct Ask {
  /// The user's own words, without the lines that name attachments and what stands in them.
  pub(super) words: String,
  pub(super) language: Language,
  pub(super) system: String,
  /// As they are to be named.
  pub(super) attachments: Vec<String>,
  /// Pictures that came as pictures.
  pub(super) pictures: usize,
  /// What the user said before, oldest first.
  pub(super) earlier: Vec<String>,
}

impl Ask {
  pub(super) fn read(body: &Value) -> Self {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_role = |role: &'static str| messages.iter().filter(move |message| message["role"] == role);
    let system = of_role("system").map(|message| text_of(&message["content"])).collect::<Vec<_>>().join("\n");
    let mut said: Vec<String> = of_role("user").map(|message| text_of(&message["content"])).collect();
    let last = said.pop().unwrap_or_default();
    let (words, attachments) = split(&last);
    let pictures = of_role("user").next_back().map_or(0, |message| pictures_of(&message["content"]));
    let earlier: Vec<String> =
      said.split_off(said.len().saturating_sub(EARLIER_MAX)).iter().map(|said| split(said).0).filter(|words| !words.is_empty()).collect();
    // A file without a word is answered in the language of the words before.
    let language = language_of(if words.is_empty() { earlier.last().map_or("", String::as_str) } else { &words });
    Self { words, language, system, attachments, pictures, earlier }
  }

  /// Says whether one of the words stands in the message: English ones as whole words, Chinese ones anywhere.
  pub(super) fn mentions(&self, words: &[&str]) -> bool {
    let said = format!(" {} ", self.words.to_lowercase().replace(|character: char| character.is_ascii_punctuation(), " "));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = format!(" {said} ");
    words.iter().any(|word| if word.is_ascii() { said.contains(&format!(" {word} ")) } else { said.contains(word) })
  }

  pub(super) fn in_language<'a>(&self, english: &'a str, chinese: &'a str) -> &'a str {
    match self.language {
      Language::English => english,
      Language::Chinese => chinese,
    }
  }
}

/// Returns the text of a message's content, which is a string or a list of parts.
pub(super) fn text_of(content: &Value) -> String {
  match content {
    Value::String(text) => text.clone(),
    Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
    _ => String::new(),
  }
}

fn pictures_of(content: &Value) -> usize {
  content.as_array().map_or(0, |parts| parts.iter().filter(|part| part["type"] == "image_url").count())
}

/// The user's own words, and the attachments that the prompt names among them. What a file holds stands between two marks and is neither.
fn split(said: &str) -> (String, Vec<String>) {
  let (mut words, mut attachments, mut end) = (Vec::new(), Vec::new(), None);
  for line in said.lines() {
    if let Some(mark) = &end {
      if line == mark {
        end = None;
      }
    } else if let Some(mark) = material_mark(line) {
      end = Some(format!("<<end of material {mark}>>"));
    } else if names_attachment(line) {
      attachments.push(named(line));
    } else {
      words.push(line);
    }
  }
  (words.join("\n").trim().to_owned(), attachments)
}

/// The mark of a line `<<material MARK: …>>`, which begins what a file holds.
fn material_mark(line: &str) -> Option<&str> {
  line.strip_prefix("<<material ")?.split_once(": ").map(|(mark, _)| mark)
}

fn names_attachment(line: &str) -> bool {
  let line = line.trim_start().to_lowercase();
  ATTACHMENT_MARKS.iter().any(|mark| line.starts_with(mark))
}

/// `[attachment "a.txt", text/plain, 12 bytes: for the model]` as a person wants to read it; any other form as it is.
fn named(line: &str) -> String {
  let line = line.trim();
  let described = || {
    let (name, rest) = line.strip_prefix("[attachment \"")?.split_once("\", ")?;
    let facts = rest.split([':', ']']).next().unwrap_or(rest);
    Some(format!("**{}** ({facts})", name.replace('*', "\\*")))
  };
  described().unwrap_or_else(|| format!("`{}`", line.replace('`', "'")))
}

fn language_of(words: &str) -> Language {
  if words.chars().any(|character| matches!(character, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}')) { Language::Chinese } else { Language::English }
}
