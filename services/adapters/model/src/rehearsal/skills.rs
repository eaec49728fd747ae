//! What the rehearsal model can do: a table of (name, hint, match, answer). A new skill is a new row; the help text is made of the
//! rows' hints, and the first row that matches answers.

use super::ask::{Ask, Language};
use super::tasks;

/// The first words of every answer: nobody may take the rehearsal for a real model.
pub(super) const INTRODUCTION: (&str, &str) = ("**Rehearsal model** (no real model is configured).", "**演练模型**（尚未接入真正的模型）。");
/// What is quoted of the user's words.
const QUOTE_CHARS_MAX: usize = 2_000;
/// Counting to it at the pace of [`Said::counting`] takes two and a half minutes, less than the time that an answer of a model may take.
const COUNT_MAX: u32 = 1_000;

/// An answer.
#[derive(Debug)]
pub(super) struct Said {
  pub(super) text: String,
  /// It counts: number by number, slow enough to be watched and stopped.
  pub(super) counting: bool,
}

struct Skill {
  /// What to type, in both languages.
  hint: (&'static str, &'static str),
  matches: fn(&Ask) -> bool,
  answer: fn(&Ask) -> String,
}

const SKILLS: &[Skill] = &[
  Skill {
    hint: ("`echo some words`: I say them back", "`重复 一些话`：我照着说一遍"),
    matches: |ask| echoed(ask).is_some(),
    answer: |ask| quote(echoed(ask).unwrap_or_default()),
  },
  Skill {
    hint: ("`count to 100`: a slow answer, to watch being written or to stop", "`数到 100`：一个慢慢写出的回答，可以边看边等，也可以停止"),
    matches: |ask| counted(ask).is_some(),
    answer: count,
  },
  Skill {
    hint: (
      "`start a task: write a file`: a background task. With the word `slowly` in it there is time to pause, steer or stop it",
      "`开始任务：写一个文件`：一个后台任务；写上“慢慢”，就有时间暂停、补充或停止它",
    ),
    matches: |ask| tasks::goal(&ask.words).is_some(),
    answer: |ask| ask.in_language("Nobody offered me a way to start tasks.", "没有人给我开始任务的办法。").to_owned(),
  },
  Skill {
    hint: (
      "`tell the task: add a title` (or `pause`, `resume`, `stop the task`): I steer the task",
      "`告诉任务：加一个标题`（或 `暂停任务`、`继续任务`、`停止任务`）：我来改变任务",
    ),
    matches: |ask| tasks::is_order(&ask.words),
    answer: |ask| ask.in_language("Nobody offered me a way to steer tasks.", "没有人给我改变任务的办法。").to_owned(),
  },
  Skill {
    hint: ("`show me a table`", "`给我看一个表格`"),
    matches: |ask| ask.mentions(&["table", "tables", "表格"]),
    answer: |ask| ask.in_language(TABLE.0, TABLE.1).to_owned(),
  },
  Skill {
    hint: ("`show me some code`", "`给我看一段代码`"),
    matches: |ask| ask.mentions(&["code", "代码"]),
    answer: |ask| ask.in_language(CODE.0, CODE.1).to_owned(),
  },
  Skill {
    hint: ("`what time is it?`: the agent tells me the time with every message", "`现在几点？`：助理会随每条消息告诉我时间"),
    matches: |ask| ask.mentions(&["what time", "the time", "what day", "what date", "几点", "时间", "几号", "星期几"]),
    answer: time,
  },
  Skill {
    hint: ("attach a file: I tell you what arrived", "附上一个文件：我会列出收到了什么"),
    matches: |ask| !ask.attachments.is_empty() || ask.pictures > 0 || ask.mentions(&["attachment", "attachments", "附件"]),
    answer: attachments,
  },
  Skill {
    hint: ("`show me a list`", "`给我看一个列表`"),
    matches: |ask| ask.mentions(&["list", "lists", "列表"]),
    answer: |ask| ask.in_language(LIST.0, LIST.1).to_owned(),
  },
  Skill {
    hint: ("`what did I say before?`: what I see of our conversation", "`我之前说了什么？`：我能看到的对话内容"),
    matches: |ask| ask.mentions(&["did i say", "i said before", "remember", "之前说", "刚才说", "记得"]),
    answer: history,
  },
  Skill {
    hint: ("`help`: this list", "`帮助`：这个列表"),
    matches: |ask| ask.words.is_empty() || ask.mentions(&["help", "hello", "hi", "what can you do", "帮助", "帮我", "你好", "能做什么", "会什么"]),
    answer: help,
  },
];

/// Answers like a model would, introduction included.
pub(super) fn answer(ask: &Ask) -> Said {
  let said = SKILLS.iter().find(|skill| (skill.matches)(ask)).map_or_else(|| unknown(ask), |skill| (skill.answer)(ask));
  let counting = echoed(ask).is_none() && counted(ask).is_some();
  Said { text: introduced(ask, &said), counting }
}

/// An answer with its first words.
pub(super) fn introduced(ask: &Ask, said: &str) -> String {
  format!("{}\n\n{said}", ask.in_language(INTRODUCTION.0, INTRODUCTION.1))
}

fn help(ask: &Ask) -> String {
  let lead = ask.in_language("I follow a script and understand nothing, but you can try these:", "我只按脚本回复，并不理解内容，不过可以试试这些：");
  let mut lines = vec![lead.to_owned(), String::new()];
  lines.extend(SKILLS.iter().map(|skill| format!("- {}", ask.in_language(skill.hint.0, skill.hint.1))));
  let model = ask.in_language(
    "For real answers, start the agent with `PA_MODEL_BASE_URL`, `PA_MODEL_NAME` and `PA_MODEL_API_KEY` set.",
    "想要真正的回答，请在启动助理时设置 `PA_MODEL_BASE_URL`、`PA_MODEL_NAME` 和 `PA_MODEL_API_KEY`。",
  );
  lines.extend([String::new(), model.to_owned()]);
  lines.join("\n")
}

fn unknown(ask: &Ask) -> String {
  let said = quote(&ask.words);
  match ask.language {
    Language::English => {
      format!("You wrote: “{said}”\n\nA real model would answer that. Type `help` to see what I can do.")
    }
    Language::Chinese => format!("你写的是：“{said}”\n\n真正的模型会回答它。输入 `帮助` 看看我能做什么。"),
  }
}

fn echoed(ask: &Ask) -> Option<&str> {
  let words = ask.words.trim();
  ["echo ", "say ", "repeat ", "重复", "请说"].iter().find_map(|verb| {
    let start = words.get(..verb.len())?;
    let rest = words[verb.len()..].trim_start_matches([' ', ':', '：']);
    (start.eq_ignore_ascii_case(verb) && !rest.is_empty()).then_some(rest)
  })
}

/// The number that is to be counted to, which may be larger than is counted.
fn counted(ask: &Ask) -> Option<u32> {
  let words = ask.words.to_lowercase();
  let at = ["count to ", "count up to ", "数到"].iter().find_map(|verb| Some(words.find(verb)? + verb.len()))?;
  let digits: String = words[at..].trim_start().chars().take_while(char::is_ascii_digit).collect();
  if digits.is_empty() {
    return None;
  }
  Some(digits.parse().unwrap_or(u32::MAX).max(1))
}

fn count(ask: &Ask) -> String {
  let wished = counted(ask).unwrap_or(1);
  let numbers = (1..=wished.min(COUNT_MAX)).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
  match (wished > COUNT_MAX, ask.language) {
    (false, _) => numbers,
    (true, Language::English) => format!("That is far; I count to {COUNT_MAX}.\n\n{numbers}\n\nThis is where I stop."),
    (true, Language::Chinese) => format!("太多了，我只数到 {COUNT_MAX}。\n\n{numbers}\n\n我就数到这里。"),
  }
}

fn time(ask: &Ask) -> String {
  let found = ask.system.lines().find_map(|line| Some((line.trim(), instant(line)?)));
  match (found, ask.language) {
    (Some((line, _)), Language::English) => {
      format!("I have no clock, but the agent tells me with your message:\n\n> {}", line.replace("the owner's", "your").replace("The owner's", "Your"))
    }
    (Some((line, instant)), Language::Chinese) => {
      let zone = line.split_once("time zone ").and_then(|(_, rest)| rest.split_once(" (")).map_or("UTC", |(zone, _)| zone);
      format!("我自己没有时钟，助理随你的消息告诉我：\n\n> 现在是 {instant}（时区：{zone}）。")
    }
    (None, Language::English) => "I have no clock, and nobody told me the time.".to_owned(),
    (None, Language::Chinese) => "我没有时钟，也没有人告诉我时间。".to_owned(),
  }
}

/// Finds `2025-01-31T12:30` or the same with a space, anywhere in a line.
fn instant(line: &str) -> Option<&str> {
  const SHAPE: &[u8] = b"dddd-dd-dd dd:dd";
  let at = line.as_bytes().windows(SHAPE.len()).position(|window| {
    window.iter().zip(SHAPE).all(|(byte, shape)| match shape {
      b'd' => byte.is_ascii_digit(),
      b' ' => matches!(byte, b' ' | b'T'),
      other => byte == other,
    })
  })?;
  line.get(at..at + SHAPE.len())
}

fn attachments(ask: &Ask) -> String {
  if ask.attachments.is_empty() && ask.pictures == 0 {
    return ask.in_language("No file came with your message.", "你的消息没有附带文件。").to_owned();
  }
  let mut lines = vec![ask.in_language("This arrived with your message:", "随你的消息收到了：").to_owned(), String::new()];
  lines.extend(ask.attachments.iter().map(|name| format!("- {}", quote(name))));
  if ask.pictures > 0 {
    lines.push(match (ask.pictures, ask.language) {
      (1, Language::English) => "\nOne of them is a picture that a model with eyes could look at.".to_owned(),
      (count, Language::English) => format!("\n{count} of them are pictures that a model with eyes could look at."),
      (count, Language::Chinese) => format!("\n其中有 {count} 张图片，能看图的模型可以查看。"),
    });
  }
  lines.join("\n")
}

fn history(ask: &Ask) -> String {
  if ask.earlier.is_empty() {
    return ask.in_language("This is the first message that I see.", "这是我看到的第一条消息。").to_owned();
  }
  let mut lines = vec![ask.in_language("Before this message you wrote:", "在这条消息之前你写过：").to_owned(), String::new()];
  lines.extend(ask.earlier.iter().enumerate().map(|(at, said)| format!("{}. {}", at + 1, quote(said.lines().next().unwrap_or("")))));
  lines.join("\n")
}

fn quote(words: &str) -> String {
  words.chars().take(QUOTE_CHARS_MAX).collect()
}

const TABLE: (&str, &str) = (
  "| Planet | Moons | Day in hours |\n|---|---:|---:|\n| Earth | 1 | 24 |\n| Mars | 2 | 24.6 |\n| Jupiter | 95 | 9.9 |",
  "| 行星 | 卫星 | 一天（小时） |\n|---|---:|---:|\n| 地球 | 1 | 24 |\n| 火星 | 2 | 24.6 |\n| 木星 | 95 | 9.9 |",
);
const CODE: (&str, &str) = (
  "A small program:\n\n```rust\nfn main() {\n    println!(\"Hello from the rehearsal\");\n}\n```\n\nand `inline` code.",
  "一个小程序：\n\n```rust\nfn main() {\n    println!(\"来自演练的问候\");\n}\n```\n\n还有 `行内` 代码。",
);
const LIST: (&str, &str) = (
  "1. First, *in italics*\n2. Second, **in bold**\n   - with a point\n   - and another\n3. Third, with a [link](https://example.org)\n\n> and a quote.",
  "1. 第一，*斜体*\n2. 第二，**粗体**\n   - 一个小点\n   - 又一个\n3. 第三，带[链接](https://example.org)\n\n> 和一段引用。",
);

#[cfg(test)]
mod tests {
  use super::*;
  use serde_json::json;

  fn said(words: &str) -> String {
    answer(&Ask::read(&json!({"messages": [
        {"role": "system", "content": "Rules.\n\nIt is now 2031-05-06 07:08, Tuesday, in the owner's time zone Europe/Berlin (UTC+02:00)."},
        {"role": "user", "content": "my cat is called Ada"},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": words},
    ]})))
    .text
  }

  #[test]
  fn every_answer_begins_by_saying_what_it_is() {
    for words in ["help", "show me a table", "echo x", "", "anything else"] {
      assert!(said(words).starts_with(INTRODUCTION.0), "{words}");
    }
    for words in ["帮助", "给我看一个表格", "重复 好", "别的什么"] {
      assert!(said(words).starts_with(INTRODUCTION.1), "{words}");
    }
  }

  #[test]
  fn each_skill_answers_in_the_users_language() {
    let cases = [
      ("echo Hello, World", "Hello, World"),
      ("重复:早上好", "早上好"),
      ("Please count to 5!", "1 2 3 4 5"),
      ("数到3", "1 2 3"),
      ("show me a table", "| Planet |"),
      ("给我看一个表格", "| 行星 |"),
      ("show me some code", "```rust"),
      ("a list, please", "1. First"),
      ("What time is it?", "> It is now 2031-05-06 07:08, Tuesday, in your time zone Europe/Berlin (UTC+02:00)."),
      ("现在几点？", "> 现在是 2031-05-06 07:08（时区：Europe/Berlin）。"),
      ("count to 900", " 899 900"),
      ("count to 5000", "I count to 1000.\n\n1 2 3"),
      ("count to 5000", " 999 1000\n\nThis is where I stop."),
      ("数到 99999999999", "我只数到 1000。"),
      ("count to the moon", "You wrote: “count to the moon”"),
      ("Help me plan my week.", "`show me a table`"),
      ("帮我规划这一周。", "`给我看一个表格`"),
      ("what did I say before?", "1. my cat is called Ada"),
      (
        "summarise\n[attachment \"报告 1.pdf\", application/pdf, 12 bytes: this type can't be read yet]",
        "with your message:\n\n- **报告 1.pdf** (application/pdf, 12 bytes)",
      ),
      ("decode this", "You wrote: “decode this”"),
      ("help", "`show me a table`"),
      ("帮助", "`给我看一个表格`"),
    ];
    for (words, expected) in cases {
      assert!(said(words).contains(expected), "{words}: {}", said(words));
    }
  }

  #[test]
  fn an_answer_is_in_the_language_of_the_users_own_words_whatever_is_attached() {
    let file = |words: &str| {
      let block = "[attachment \"会议记录.md\", text/markdown, 30 bytes]\n<<material ab12: the content of this file, written by somebody or something else>>\n请给我看一个表格 code\n<<end of material ab12>>";
      json!([{"type": "text", "text": words}, {"type": "text", "text": block}])
    };
    let said = |words: &str| {
      let messages = json!([{"role": "user", "content": "你好"}, {"role": "user", "content": file(words)}]);
      answer(&Ask::read(&json!({ "messages": messages }))).text
    };
    let english = said("What is in this file?");
    assert!(english.starts_with(INTRODUCTION.0) && english.contains("- **会议记录.md** (text/markdown, 30 bytes)"), "{english}");
    let chinese = said("文件里有什么？");
    assert!(chinese.starts_with(INTRODUCTION.1) && chinese.contains("- **会议记录.md** (text/markdown, 30 bytes)"), "{chinese}");
    // A file without a word: the language of the words before.
    assert!(said("").starts_with(INTRODUCTION.1));
  }

  #[test]
  fn every_hint_that_can_be_typed_reaches_its_skill() {
    for (row, skill) in SKILLS.iter().enumerate() {
      for hint in [skill.hint.0, skill.hint.1] {
        let Some(typed) = hint.split('`').nth(1) else {
          continue;
        };
        let ask = Ask::read(&json!({"messages": [{"role": "user", "content": typed}]}));
        assert_eq!(SKILLS.iter().position(|skill| (skill.matches)(&ask)), Some(row), "{typed}");
      }
    }
  }
}
