//! The readable text of a page: what a person would read, with its links, as plain text.
//!
//! html5ever's tokenizer reads it and nothing becomes a tree: a page can make neither our stack nor the work per tag deep. It is fed in pieces, and given up
//! when it takes longer than pages take.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use html5ever::TokenizerResult;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use reqwest::Url;

/// The longest that a page is worked on.
const WORK_MAX: Duration = Duration::from_secs(5);
/// Bytes that are given to the tokenizer at once; in between it is looked at the time.
const PIECE_BYTES: usize = 8 * 1024;
/// Bytes of a link that is shown: longer ones carry data, not an address.
const LINK_BYTES_MAX: usize = 500;
/// Characters of a title.
const TITLE_CHARS_MAX: usize = 300;
/// Columns of indentation that nested lists have at most.
const INDENT_MAX: usize = 8;

/// What was read of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
  pub(super) title: String,
  pub(super) text: String,
  /// It took too long: this is its beginning.
  pub(super) is_cut: bool,
}

/// Reads a page; links are completed by its address.
pub(super) fn readable(html: &str, address: &Url) -> Page {
  let page = read(html, address, Instant::now() + WORK_MAX, true);
  // A page that forgets to close its navigation, or is nothing else.
  if page.text.is_empty() { read(html, address, Instant::now() + WORK_MAX, false) } else { page }
}

/// Reads a page until it ends or `ends_at`; with or without what stands on every page of a site.
fn read(html: &str, address: &Url, ends_at: Instant, bare: bool) -> Page {
  let tokenizer = Tokenizer::new(Reader { address: address.clone(), bare, state: RefCell::default() }, TokenizerOpts::default());
  let queue = BufferQueue::default();
  let mut rest = html;
  let mut is_cut = false;
  while !rest.is_empty() {
    let (piece, behind) = rest.split_at(rest.ceil_char_boundary(PIECE_BYTES.min(rest.len())));
    rest = behind;
    queue.push_back(StrTendril::from_slice(piece));
    while !matches!(tokenizer.feed(&queue), TokenizerResult::Done) {}
    if Instant::now() >= ends_at && !rest.is_empty() {
      is_cut = true;
      break;
    }
  }
  tokenizer.end();
  let state = tokenizer.sink.state.take();
  let title: String = state.title.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TITLE_CHARS_MAX).collect();
  Page { title, text: state.out.finish(), is_cut }
}

struct Reader {
  address: Url,
  bare: bool,
  state: RefCell<State>,
}

#[derive(Default)]
struct State {
  out: Text,
  title: String,
  in_title: bool,
  /// The name of the element whose content isn't read, and how many of that name are open.
  skipped: Option<(String, usize)>,
  /// Where the open link began in the text, and where it leads.
  link: Option<(usize, String)>,
  /// Numbers of open lists; 0 for one without numbers.
  lists: Vec<u32>,
}

impl TokenSink for Reader {
  type Handle = ();

  fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
    let mut state = self.state.borrow_mut();
    match token {
      Token::CharacterTokens(text) => state.words(&text),
      Token::TagToken(tag) if tag.kind == TagKind::StartTag => return state.start(&tag, self),
      Token::TagToken(tag) => state.end(&tag.name),
      Token::DoctypeToken(_) | Token::CommentToken(_) | Token::NullCharacterToken | Token::EOFToken | Token::ParseError(_) => {}
    }
    TokenSinkResult::Continue
  }
}

/// Elements whose content is for programs.
fn is_skipped(name: &str) -> bool {
  matches!(name, "script" | "style" | "noscript" | "template" | "svg" | "math" | "iframe" | "object" | "select" | "canvas" | "noframes")
}

/// Elements that stand on every page of a site.
fn is_frame(name: &str) -> bool {
  matches!(name, "nav" | "footer" | "dialog")
}

fn is_block(name: &str) -> bool {
  matches!(
    name,
    "p"
      | "div"
      | "section"
      | "article"
      | "main"
      | "header"
      | "aside"
      | "blockquote"
      | "ul"
      | "ol"
      | "dl"
      | "table"
      | "figure"
      | "figcaption"
      | "form"
      | "fieldset"
      | "details"
      | "summary"
      | "address"
      | "pre"
      | "hr"
      | "h1"
      | "h2"
      | "h3"
      | "h4"
      | "h5"
      | "h6"
      | "body"
      | "title"
  )
}

fn heading(name: &str) -> Option<usize> {
  let level = name.strip_prefix('h')?.parse().ok()?;
  (1..=6).contains(&level).then_some(level)
}

impl State {
  fn words(&mut self, text: &str) {
    if self.in_title {
      self.title.push_str(text);
    } else if self.skipped.is_none() {
      self.out.words(text);
    }
  }

  fn start(&mut self, tag: &Tag, reader: &Reader) -> TokenSinkResult<()> {
    let name = &*tag.name;
    // Their content is no markup, and the tokenizer must know.
    let raw = match name {
      "script" => Some(RawKind::ScriptData),
      "style" | "noscript" | "iframe" | "noframes" | "xmp" => Some(RawKind::Rawtext),
      "title" | "textarea" => Some(RawKind::Rcdata),
      _ => None,
    };
    if let Some((skipped, open)) = &mut self.skipped {
      *open += usize::from(skipped == name && !tag.self_closing);
    } else if is_skipped(name) || (reader.bare && is_frame(name)) {
      self.skipped = (!tag.self_closing).then(|| (name.to_owned(), 1));
    } else {
      self.open(name, tag, &reader.address);
    }
    raw.map_or(TokenSinkResult::Continue, TokenSinkResult::RawData)
  }

  fn open(&mut self, name: &str, tag: &Tag, address: &Url) {
    let attribute = |wanted: &str| tag.attrs.iter().find(|attribute| &*attribute.name.local == wanted).map(|attribute| attribute.value.trim());
    self.part(name);
    match name {
      "title" => self.in_title = self.title.is_empty(),
      "pre" => self.out.verbatim += 1,
      "a" => {
        self.close_link();
        self.link = attribute("href").and_then(|href| shown_link(href, address)).map(|link| (self.out.text.len(), link));
      }
      "img" => {
        if let Some(words) = attribute("alt").filter(|words| !words.is_empty()) {
          self.out.words(&format!("[{words}]"));
        }
      }
      "ul" => self.lists.push(0),
      "ol" => self.lists.push(1),
      "li" => self.item(),
      "br" | "tr" | "dt" => self.out.line(),
      "dd" => {
        self.out.line();
        self.out.words("  ");
      }
      "td" | "th" => self.out.cell(),
      "hr" => self.out.words("---"),
      _ => {
        if let Some(level) = heading(name) {
          self.out.raw(&format!("{} ", "#".repeat(level)));
        }
      }
    }
  }

  fn item(&mut self) {
    let indent = " ".repeat((self.lists.len().saturating_sub(1) * 2).min(INDENT_MAX));
    let mark = match self.lists.last_mut() {
      Some(number) if *number > 0 => {
        *number += 1;
        format!("{}. ", *number - 1)
      }
      _ => "- ".to_owned(),
    };
    self.out.line();
    self.out.raw(&format!("{indent}{mark}"));
  }

  fn end(&mut self, name: &str) {
    if let Some((skipped, open)) = &mut self.skipped {
      if skipped == name {
        *open -= 1;
        if *open == 0 {
          self.skipped = None;
        }
      }
      return;
    }
    match name {
      "title" => self.in_title = false,
      "a" => self.close_link(),
      "pre" => self.out.verbatim = self.out.verbatim.saturating_sub(1),
      "ul" | "ol" => {
        self.lists.pop();
      }
      _ => {}
    }
    self.part(name);
  }

  /// A list in another one stands close to it; other blocks stand apart.
  fn part(&mut self, name: &str) {
    if matches!(name, "ul" | "ol") && !self.lists.is_empty() {
      self.out.line();
    } else if is_block(name) {
      self.out.block();
    }
  }

  fn close_link(&mut self) {
    if let Some((begun, link)) = self.link.take()
      && self.out.text.len() > begun
    {
      self.out.raw(&format!(" <{link}>"));
    }
  }
}

/// A link as it is shown: whole, and only one that leads to a page.
fn shown_link(href: &str, address: &Url) -> Option<String> {
  if href.is_empty() || href.starts_with('#') {
    return None;
  }
  let link = address.join(href).ok()?;
  let leads = matches!(link.scheme(), "http" | "https" | "mailto") && link.as_str().len() <= LINK_BYTES_MAX;
  leads.then(|| link.into())
}

/// Text that is being written: white space as pages mean it.
#[derive(Default)]
struct Text {
  text: String,
  /// Line ends before the next words.
  lines: usize,
  /// White space before the next words.
  space: bool,
  /// Open elements that keep their white space.
  verbatim: usize,
}

impl Text {
  fn words(&mut self, words: &str) {
    if self.verbatim > 0 {
      self.begin();
      self.text.push_str(words);
      return;
    }
    for word in words.split_inclusive(char::is_whitespace) {
      let bare = word.trim_end();
      if bare.is_empty() {
        self.space = true;
        continue;
      }
      self.begin();
      self.text.push_str(bare);
      self.space = bare.len() < word.len();
    }
  }

  /// Text of ours, which has its own white space.
  fn raw(&mut self, text: &str) {
    self.space = false;
    self.begin();
    self.text.push_str(text);
  }

  fn begin(&mut self) {
    if self.text.is_empty() {
      self.lines = 0;
    } else if self.lines > 0 {
      self.text.truncate(self.text.trim_end_matches([' ', '\t']).len());
      self.text.extend(std::iter::repeat_n('\n', self.lines));
    } else if self.space && !self.text.ends_with([' ', '\n']) {
      self.text.push(' ');
    }
    (self.lines, self.space) = (0, false);
  }

  fn line(&mut self) {
    self.lines = self.lines.max(1);
  }

  fn block(&mut self) {
    self.lines = self.lines.max(2);
  }

  fn cell(&mut self) {
    if self.lines == 0 && !self.text.is_empty() {
      self.raw(" | ");
    }
  }

  fn finish(self) -> String {
    self.text.trim_end().to_owned()
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  fn address() -> Url {
    Url::parse("https://example.org/a/b").unwrap()
  }

  fn page(html: &str) -> Page {
    readable(html, &address())
  }

  #[test]
  fn a_page_becomes_what_a_person_reads() {
    let page = page(
      "<!doctype html><html><head><title> The\n title </title><style>p{}</style><script>if (a<b) document.write('<p>no')</script></head><body>\
       <nav><ul><li>Home<nav>x</nav></li></ul></nav><h1>Prices &amp; more</h1><p>One  two\nthree.<br>Four <a href='../c?x=1&amp;y'>a <b>link</b></a>, <a href='javascript:x'>none</a></p>\
       <ul><li>first<li>second<ol><li>a</li><li>b</li></ol></ul><table><tr><th>Name<th>Sum</tr><tr><td>x</td><td>1.204,88 €</td></tr></table>\
       <pre>  keep\n    this</pre><img src=x alt='A cat'><footer>imprint</footer></body></html>",
    );
    assert_eq!(page.title, "The title");
    assert_eq!(
      page.text,
      "# Prices & more\n\nOne two three.\nFour a link <https://example.org/c?x=1&y>, none\n\n- first\n- second\n  1. a\n  2. b\n\nName | Sum\nx | 1.204,88 €\n\n  keep\n    this\n\n[A cat]"
    );
  }

  #[test]
  fn broken_pages_end() {
    for html in ["", "<", "<p", "<script>", "<title>x", "<a href=x", "</p></p></ul></ol>", "<!--", "&#xFFFFFFFF;", "<nav><p>x", "<svg/>y", "<plaintext>z"] {
      let page = page(html);
      assert!(page.text.len() < 50, "{html}");
    }
    assert_eq!(page("<svg/>y").text, "y");
    assert_eq!(page("<nav>only <b>this</b>").text, "only this");
  }

  /// A tree of these pages would be as deep as they are long, and looking for repeated attributes takes the square of their number.
  #[test]
  fn pages_that_are_made_to_be_slow_or_deep_are_read_in_time() {
    let deep = page(&format!("{}x", "<div><ul><li>".repeat(100_000)));
    assert!(deep.text.ends_with('x'));
    let attributes: Vec<String> = (0..400_000).map(|number| format!("a{number}")).collect();
    let soon = Instant::now() + Duration::from_millis(200);
    let wide = read(&format!("<p>begun</p><p {}>y", attributes.join(" ")), &address(), soon, true);
    assert_eq!((wide.text.as_str(), wide.is_cut), ("begun", true));
  }
}
