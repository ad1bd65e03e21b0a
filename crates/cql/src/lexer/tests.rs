//! The lexer against token streams captured from Cassandra 5.0.9's own.

use super::*;

/// What ANTLR calls a token.
fn name(kind: Kind) -> String {
    let fixed = match kind {
        Kind::Keyword(Keyword::Nan) => "K_POSITIVE_NAN",
        Kind::Keyword(Keyword::Infinity) => "K_POSITIVE_INFINITY",
        Kind::Keyword(Keyword::Table) => "K_COLUMNFAMILY",
        Kind::Keyword(word) => return format!("K_{}", word.text().to_uppercase()),
        Kind::NegativeNan => "K_NEGATIVE_NAN",
        Kind::NegativeInfinity => "K_NEGATIVE_INFINITY",
        Kind::Ident => "IDENT",
        Kind::QuotedName => "QUOTED_NAME",
        Kind::EmptyQuotedName => "EMPTY_QUOTED_NAME",
        Kind::String => "STRING_LITERAL",
        Kind::Integer => "INTEGER",
        Kind::Float => "FLOAT",
        Kind::Boolean => "BOOLEAN",
        Kind::Duration => "DURATION",
        Kind::Uuid => "UUID",
        Kind::Hex => "HEXNUMBER",
        Kind::Question => "QMARK",
        Kind::Range => "RANGE",
        Kind::Star => "'\\\\*'",
        Kind::End => "EOF",
        Kind::Expr => "'expr('",
        Kind::Semicolon => "';'",
        Kind::Comma => "','",
        Kind::Colon => "':'",
        Kind::Dot => "'.'",
        Kind::OpenParen => "'('",
        Kind::CloseParen => "')'",
        Kind::OpenBracket => "'['",
        Kind::CloseBracket => "']'",
        Kind::OpenBrace => "'{'",
        Kind::CloseBrace => "'}'",
        Kind::Plus => "'+'",
        Kind::Minus => "'-'",
        Kind::Slash => "'/'",
        Kind::Percent => "'%'",
        Kind::Equal => "'='",
        Kind::Less => "'<'",
        Kind::LessEqual => "'<='",
        Kind::Greater => "'>'",
        Kind::GreaterEqual => "'>='",
        Kind::NotEqual => "'!='",
        Kind::PlusEqual => "'+='",
        Kind::MinusEqual => "'-='",
    };
    fixed.to_owned()
}

/// The names of all tokens, or `ERR` where the text cannot be read.
fn stream(text: &str) -> String {
    let (tokens, fault) = lex(text);
    if fault.is_some() {
        return "ERR".to_owned();
    }
    let names: Vec<String> =
        tokens.iter().take_while(|t| t.kind != Kind::End).map(|t| name(t.kind)).collect();
    names.join(" ")
}

#[test]
fn tokens_are_those_of_cassandra() {
    let golden = include_str!("../../testdata/tokens.txt");
    let mut seen = 0;
    for line in golden.lines().filter(|line| !line.starts_with('#')) {
        let (text, expected) = line.split_once('\t').expect("text, tab, tokens");
        let text = text.replace("\\n", "\n");
        assert_eq!(stream(&text), expected, "{text:?}");
        seen += 1;
    }
    assert!(seen >= 300, "{seen}");
}

#[test]
fn tokens_are_ranges_of_the_text() {
    let (tokens, fault) = lex("SELECT 'it''s' -- note\n, \"A\"");
    assert_eq!(fault, None);
    let ranges: Vec<_> = tokens.iter().map(|t| (t.start, t.end)).collect();
    assert_eq!(ranges, [(0, 6), (7, 14), (23, 24), (25, 28), (28, 28)]);
}
