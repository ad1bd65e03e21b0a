//! Tokens to syntax tree, by recursive descent. One file per family of statements, as in
//! [`ast`](crate::ast).
//!
//! The productions are those of Cassandra 5.0.9's grammar. Where that grammar needs more than a
//! token of look-ahead, the choice made here is noted beside it; where its actions refuse a text,
//! so do these.

mod class_name;
mod describe;
mod error;
mod function;
mod modify;
mod name;
mod object_name;
mod permission;
mod property;
mod relation;
mod role;
mod schema;
mod select;
mod selectable;
mod table;
mod term;
mod type_name;

use crate::ast::{Parsed, Statement};
use crate::lexer::{Keyword as K, Kind, Token, lex};
use error::Fault;

pub use error::{ParseError, SyntaxError};

/// How deep terms, selectors and types may nest, and how high a tree of operators may grow.
/// Cassandra's own limit is the stack of a JVM thread.
pub const MAX_DEPTH: u32 = 128;

type Res<T> = Result<T, Box<Fault>>;

/// Parses one statement. Semicolons may follow it; anything else may not.
pub fn parse(text: &str) -> Result<Parsed, ParseError> {
    parse_text(text, false)
}

/// [`parse`] for clients whose driver was told of shards: such drivers end their queries of a
/// node's metadata in `USING TIMEOUT`, which is no part of Cassandra's grammar.
pub fn parse_of_shard_aware(text: &str) -> Result<Parsed, ParseError> {
    parse_text(text, true)
}

fn parse_text(text: &str, is_shard_aware: bool) -> Result<Parsed, ParseError> {
    if u32::try_from(text.len()).is_err() {
        return Err(ParseError::Invalid("The statement is too long".to_owned()));
    }
    let (tokens, lexical) = lex(text);
    let mut parser = Parser {
        text,
        tokens,
        at: 0,
        looked_at: usize::MAX,
        depth: 0,
        height: 0,
        markers: Vec::new(),
        is_shard_aware,
    };
    match (parser.query(), lexical) {
        (Ok(statement), None) => Ok(Parsed { statement, markers: parser.markers }),
        // The token that could not be read shows as the end of the text: what the lexer says is
        // nearer.
        (Ok(_), Some(error)) => Err(error::word_lexical(text, &error)),
        // A rule that is broken ends the parsing at once; of what is no CQL the last is told.
        (Err(fault), Some(error))
            if !matches!(*fault, Fault::Invalid(_)) && fault.token() + 1 >= parser.tokens.len() =>
        {
            Err(error::word_lexical(text, &error))
        }
        (Err(fault), _) => Err(error::word(text, &parser.tokens, *fault)),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Ends with one `Kind::End`.
    tokens: Vec<Token>,
    /// Index of the next token.
    at: usize,
    /// Index of the last token that was needed to tell what stands before it; only messages depend
    /// on it.
    looked_at: usize,
    /// Nesting at this point of the text.
    depth: u32,
    /// Height of the tree that the last production of a term or selector returned.
    height: u32,
    markers: Vec<Option<String>>,
    /// Was the client told of shards?
    is_shard_aware: bool,
}

/// Where to go back to if a guess fails.
#[derive(Clone, Copy)]
struct Mark {
    at: usize,
    depth: u32,
    markers: usize,
}

impl<'a> Parser<'a> {
    fn query(&mut self) -> Res<Statement> {
        let statement = self.statement()?;
        while self.eat(Kind::Semicolon) {}
        if self.kind() != Kind::End {
            return self.mismatch("EOF");
        }
        Ok(statement)
    }

    fn statement(&mut self) -> Res<Statement> {
        let Kind::Keyword(first) = self.kind() else { return self.no_viable() };
        match first {
            K::Select => Ok(Statement::Select(Box::new(self.select()?))),
            K::Insert => Ok(Statement::Insert(Box::new(self.insert()?))),
            K::Update => Ok(Statement::Update(Box::new(self.update()?))),
            K::Delete => Ok(Statement::Delete(Box::new(self.delete()?))),
            K::Begin => Ok(Statement::Batch(Box::new(self.batch()?))),
            K::Use => {
                self.skip();
                Ok(Statement::Use(self.keyspace_name()?))
            }
            K::Truncate => {
                self.skip();
                self.eat_word(K::Table);
                Ok(Statement::Truncate(self.table_name()?))
            }
            K::Create => self.create(),
            K::Alter => self.alter(),
            K::Drop => self.drop(),
            K::Add => self.add_identity(),
            K::Grant => self.grant(),
            K::Revoke => self.revoke(),
            K::List => self.list(),
            K::Describe | K::Desc => self.describe(),
            _ => self.no_viable(),
        }
    }

    fn create(&mut self) -> Res<Statement> {
        let Kind::Keyword(what) = self.kind_at(1) else { return self.no_viable_at(1) };
        match what {
            K::Keyspace => self.create_keyspace(),
            K::Table => self.create_table(),
            K::Type => self.create_type(),
            K::Index | K::Custom => self.create_index(),
            K::Materialized => self.create_view(),
            K::Trigger => self.create_trigger(),
            K::Function => self.create_function(),
            K::Aggregate => self.create_aggregate(),
            K::Or => match self.kind_at(3) {
                Kind::Keyword(K::Aggregate) => self.create_aggregate(),
                _ => self.create_function(),
            },
            K::Role => self.create_role(),
            K::User => self.create_user(),
            _ => self.no_viable_at(1),
        }
    }

    fn alter(&mut self) -> Res<Statement> {
        let Kind::Keyword(what) = self.kind_at(1) else { return self.no_viable_at(1) };
        match what {
            K::Keyspace => self.alter_keyspace(),
            K::Table => self.alter_table(),
            K::Type => self.alter_type(),
            K::Materialized => self.alter_view(),
            K::Role => self.alter_role(),
            K::User => self.alter_user(),
            _ => self.no_viable_at(1),
        }
    }

    fn drop(&mut self) -> Res<Statement> {
        let Kind::Keyword(what) = self.kind_at(1) else { return self.no_viable_at(1) };
        match what {
            K::Keyspace => self.drop_keyspace(),
            K::Table => self.drop_table(),
            K::Type => self.drop_type(),
            K::Index => self.drop_index(),
            K::Materialized => self.drop_view(),
            K::Trigger => self.drop_trigger(),
            K::Function => self.drop_function(),
            K::Aggregate => self.drop_aggregate(),
            K::Role => self.drop_role(),
            K::User => self.drop_user(),
            K::Identity => self.drop_identity(),
            _ => self.no_viable_at(1),
        }
    }
}

/// The ways of looking at tokens and of taking them.
impl<'a> Parser<'a> {
    fn kind(&self) -> Kind {
        self.kind_at(0)
    }

    fn kind_at(&self, ahead: usize) -> Kind {
        self.tokens.get(self.at + ahead).map_or(Kind::End, |token| token.kind)
    }

    fn is(&self, word: K) -> bool {
        self.kind() == Kind::Keyword(word)
    }

    fn is_at(&self, ahead: usize, word: K) -> bool {
        self.kind_at(ahead) == Kind::Keyword(word)
    }

    /// The source of the next token.
    fn source(&self) -> &'a str {
        let token = self.tokens.get(self.at);
        token.and_then(|t| self.text.get(t.start as usize..t.end as usize)).unwrap_or("")
    }

    fn skip(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.skip();
        }
        found
    }

    fn eat_word(&mut self, word: K) -> bool {
        self.eat(Kind::Keyword(word))
    }

    /// Takes a token that must be there; `shown` is what the message calls it.
    fn expect(&mut self, kind: Kind, shown: &'static str) -> Res<()> {
        if self.eat(kind) { Ok(()) } else { self.mismatch(shown) }
    }

    fn expect_word(&mut self, word: K) -> Res<()> {
        if self.eat_word(word) { Ok(()) } else { self.mismatch(token_name(word)) }
    }

    fn expect_words(&mut self, words: &[K]) -> Res<()> {
        words.iter().try_for_each(|word| self.expect_word(*word))
    }

    /// `IF NOT EXISTS`, if an `IF` stands here.
    fn if_not_exists(&mut self) -> Res<bool> {
        let given = self.eat_word(K::If);
        if given {
            self.expect_words(&[K::Not, K::Exists])?;
        }
        Ok(given)
    }

    /// `IF EXISTS`, if an `IF` stands here.
    fn if_exists(&mut self) -> Res<bool> {
        let given = self.eat_word(K::If);
        if given {
            self.expect_word(K::Exists)?;
        }
        Ok(given)
    }

    /// One or more, with commas between.
    fn comma_list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Res<T>) -> Res<Vec<T>> {
        let mut list = vec![one(self)?];
        while self.eat(Kind::Comma) {
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// One or more in parentheses.
    fn paren_list<T>(&mut self, one: impl FnMut(&mut Self) -> Res<T>) -> Res<Vec<T>> {
        self.expect(Kind::OpenParen, "'('")?;
        let list = self.comma_list(one)?;
        self.expect(Kind::CloseParen, "')'")?;
        Ok(list)
    }

    /// None or more in parentheses.
    fn paren_list_or_empty<T>(&mut self, one: impl FnMut(&mut Self) -> Res<T>) -> Res<Vec<T>> {
        if self.kind() == Kind::OpenParen && self.kind_at(1) == Kind::CloseParen {
            self.skip();
            self.skip();
            return Ok(Vec::new());
        }
        self.paren_list(one)
    }

    /// One or more, with `AND` between.
    fn and_list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Res<T>) -> Res<Vec<T>> {
        let mut list = vec![one(self)?];
        while self.eat_word(K::And) {
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// A bind marker's number, if one stands here.
    fn marker(&mut self) -> Res<Option<u32>> {
        let name = match self.kind() {
            Kind::Question => {
                self.skip();
                None
            }
            Kind::Colon => {
                self.skip();
                Some(self.name()?)
            }
            _ => return Ok(None),
        };
        let number = u32::try_from(self.markers.len()).unwrap_or(u32::MAX);
        self.markers.push(name);
        Ok(Some(number))
    }

    /// Runs a production one level deeper.
    fn nested<T>(&mut self, production: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        if self.depth >= MAX_DEPTH {
            return self.rule("The statement is nested too deeply".to_owned());
        }
        self.depth += 1;
        let result = production(self);
        self.depth -= 1;
        result
    }

    /// The tree at hand got a new root above children of this height and of the last one's.
    fn grow(&mut self, other: u32) -> Res<()> {
        self.height = self.height.max(other) + 1;
        if self.height > MAX_DEPTH {
            return self.rule("The statement has an expression of too many operators".to_owned());
        }
        Ok(())
    }

    fn mark(&self) -> Mark {
        Mark { at: self.at, depth: self.depth, markers: self.markers.len() }
    }

    fn go_back(&mut self, mark: Mark) {
        self.at = mark.at;
        self.depth = mark.depth;
        self.markers.truncate(mark.markers);
    }

    /// The next token is not the one that must stand here. Where Cassandra's parser had to look at
    /// it to choose a production, it says that none is viable.
    fn mismatch<T>(&self, expected: &'static str) -> Res<T> {
        if self.looked_at == self.at {
            return self.no_viable();
        }
        Err(Box::new(Fault::Mismatch(self.at, expected)))
    }

    /// Notes that the next token decided what the last ones were (see `mismatch`).
    fn looked_ahead(&mut self) {
        self.looked_at = self.at;
    }

    fn no_viable<T>(&self) -> Res<T> {
        self.no_viable_at(0)
    }

    fn no_viable_at<T>(&self, ahead: usize) -> Res<T> {
        Err(Box::new(Fault::NoViable(self.at + ahead)))
    }

    /// A syntax error that no single token shows.
    fn rule<T>(&self, message: String) -> Res<T> {
        Err(Box::new(Fault::Rule(self.at, message)))
    }

    fn invalid<T>(&self, message: String) -> Res<T> {
        Err(Box::new(Fault::Invalid(message)))
    }
}

/// What ANTLR calls a keyword in its messages, for those that can be the only one expected.
fn token_name(word: K) -> &'static str {
    macro_rules! names {
        ($($variant:ident => $name:literal,)*) => {
            match word { $(K::$variant => concat!("K_", $name),)* _ => word.text() }
        };
    }
    names! {
        Aggregate => "AGGREGATE", And => "AND", As => "AS", Batch => "BATCH", By => "BY",
        Clustering => "CLUSTERING", Datacenters => "DATACENTERS", Exists => "EXISTS",
        Filtering => "FILTERING", From => "FROM", Function => "FUNCTION", In => "IN", Index => "INDEX",
        Input => "INPUT", Internals => "INTERNALS", Into => "INTO", Key => "KEY",
        Keyspace => "KEYSPACE", Language => "LANGUAGE", Limit => "LIMIT", Masked => "MASKED",
        Not => "NOT", Null => "NULL", Of => "OF", On => "ON", Order => "ORDER",
        Partition => "PARTITION", Password => "PASSWORD", Primary => "PRIMARY",
        Replace => "REPLACE", Returns => "RETURNS", Role => "ROLE", Schema => "SCHEMA",
        Select => "SELECT", Set => "SET", Sfunc => "SFUNC", Storage => "STORAGE",
        Stype => "STYPE", Table => "COLUMNFAMILY", Timestamp => "TIMESTAMP", To => "TO",
        Type => "TYPE", Using => "USING", Values => "VALUES", View => "VIEW", Where => "WHERE",
        With => "WITH",
    }
}
