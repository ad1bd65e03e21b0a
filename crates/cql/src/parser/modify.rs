//! INSERT, UPDATE, DELETE and BATCH.

use super::{K, Parser, Res};
use crate::ast::{
    Assignment, Attributes, Batch, BatchKind, ColumnCondition, ColumnPart, Condition,
    ConditionTest, Delete, DeleteTarget, Insert, InsertValues, JsonDefault, JsonValue, Literal,
    LiteralKind, Modification, Operation, Term, Update,
};
use crate::lexer::Kind;

impl Parser<'_> {
    pub(super) fn insert(&mut self) -> Res<Insert> {
        self.expect_words(&[K::Insert, K::Into])?;
        let table = self.table_name()?;
        let values = if self.eat_word(K::Json) {
            self.json_values()?
        } else {
            let columns = self.paren_list(Self::column)?;
            self.expect_word(K::Values)?;
            InsertValues::Columns(columns, self.paren_list(Self::term)?)
        };
        let if_not_exists = self.if_not_exists()?;
        let attributes = self.using()?;
        Ok(Insert { table, values, if_not_exists, attributes })
    }

    fn json_values(&mut self) -> Res<InsertValues> {
        let document = match self.marker()? {
            Some(marker) => JsonValue::Marker(marker),
            None if self.kind() == Kind::String => JsonValue::Text(self.string()?),
            None => return self.no_viable(),
        };
        let mut default = JsonDefault::Null;
        if self.eat_word(K::Default) {
            if self.eat_word(K::Unset) {
                default = JsonDefault::Unset;
            } else if !self.eat_word(K::Null) {
                return self.no_viable();
            }
        }
        Ok(InsertValues::Json(document, default))
    }

    /// `USING TIMESTAMP t AND TTL t`, if given.
    fn using(&mut self) -> Res<Attributes> {
        let mut attributes = Attributes::default();
        if !self.eat_word(K::Using) {
            return Ok(attributes);
        }
        self.and_list(|p| {
            if p.eat_word(K::Timestamp) {
                attributes.timestamp = Some(p.int_value()?);
            } else if p.eat_word(K::Ttl) {
                attributes.ttl = Some(p.int_value()?);
            } else {
                return p.no_viable();
            }
            Ok(())
        })?;
        Ok(attributes)
    }

    pub(super) fn update(&mut self) -> Res<Update> {
        self.expect_word(K::Update)?;
        let table = self.table_name()?;
        let attributes = self.using()?;
        self.expect_word(K::Set)?;
        let assignments = self.comma_list(Self::assignment)?;
        self.check_assignments(&assignments)?;
        self.expect_word(K::Where)?;
        let filter = self.relations()?;
        let condition = self.condition()?;
        Ok(Update { table, attributes, assignments, filter, condition })
    }

    fn assignment(&mut self) -> Res<Assignment> {
        let column = self.column()?;
        let operation = match self.kind() {
            Kind::Equal => {
                self.skip();
                self.plain_assignment(&column)?
            }
            Kind::PlusEqual => {
                self.skip();
                Operation::Add(self.term()?)
            }
            Kind::MinusEqual => {
                self.skip();
                Operation::Subtract(self.term()?)
            }
            Kind::OpenBracket => {
                self.skip();
                let key = self.nested(Self::term)?;
                self.expect(Kind::CloseBracket, "']'")?;
                self.expect(Kind::Equal, "'='")?;
                Operation::SetElement(key, self.term()?)
            }
            Kind::Dot => {
                self.skip();
                let field = self.name()?;
                self.expect(Kind::Equal, "'='")?;
                Operation::SetField(field, self.term()?)
            }
            _ => return self.no_viable(),
        };
        Ok(Assignment { column, operation })
    }

    /// What follows `c =`: `v`, `v + c`, `c + v`, `c - v` or, as `c -3` is two tokens, `c` and an
    /// integer.
    fn plain_assignment(&mut self, column: &str) -> Res<Operation> {
        if !self.is_column_at(0) || self.is_call_at(0) || self.is_cast() {
            let value = self.term()?;
            if !self.eat(Kind::Plus) {
                return Ok(Operation::Set(value));
            }
            if self.column()? != column {
                return self.rule(
                    "Only expressions of the form X = <value> + X are supported.".to_owned(),
                );
            }
            return Ok(Operation::Prepend(value));
        }
        let operand = self.column()?;
        let (sign, operation) = match self.kind() {
            Kind::Plus => {
                self.skip();
                ("+", Operation::Add(self.term()?))
            }
            Kind::Minus => {
                self.skip();
                ("-", Operation::Subtract(self.term()?))
            }
            Kind::Integer => {
                let text = self.source().to_owned();
                self.skip();
                let sign = if text.starts_with('-') { "- " } else { "+ " };
                let literal = Literal { kind: LiteralKind::Integer, text };
                (sign, Operation::Add(Term::Literal(literal)))
            }
            _ => return self.no_viable(),
        };
        if operand != column {
            return self
                .rule(format!("Only expressions of the form X = X {sign}<value> are supported."));
        }
        Ok(operation)
    }

    fn is_cast(&self) -> bool {
        self.is(K::Cast) && self.kind_at(1) == Kind::OpenParen
    }

    /// A column that is set whole is set once, and a field is set once.
    fn check_assignments(&self, assignments: &[Assignment]) -> Res<()> {
        if assignments.len() == 1 {
            return Ok(());
        }
        let mut sorted: Vec<&Assignment> = assignments.iter().collect();
        fn rank(assignment: &Assignment) -> (u8, &str) {
            match &assignment.operation {
                Operation::Set(_) => (0, ""),
                Operation::SetField(field, _) => (1, field),
                _ => (2, ""),
            }
        }
        // Whole assignments sort first within their column, and equal fields next to each other.
        sorted.sort_by(|a, b| (&a.column, rank(a)).cmp(&(&b.column, rank(b))));
        for (a, b) in sorted.iter().zip(sorted.iter().skip(1)) {
            let clash = matches!(a.operation, Operation::Set(_))
                || matches!(a.operation, Operation::SetField(..)) && rank(a) == rank(b);
            if a.column == b.column && clash {
                return self.rule(format!("Multiple incompatible setting of column {}", a.column));
            }
        }
        Ok(())
    }

    fn condition(&mut self) -> Res<Option<Condition>> {
        if !self.eat_word(K::If) {
            return Ok(None);
        }
        if self.is(K::Exists) && !self.is_condition_at(1) {
            self.skip();
            return Ok(Some(Condition::Exists));
        }
        Ok(Some(Condition::All(self.and_list(Self::column_condition)?)))
    }

    /// Whether what follows a column in a condition stands that far ahead.
    fn is_condition_at(&self, ahead: usize) -> bool {
        match self.kind_at(ahead) {
            Kind::Equal
            | Kind::Less
            | Kind::LessEqual
            | Kind::Greater
            | Kind::GreaterEqual
            | Kind::NotEqual
            | Kind::OpenBracket
            | Kind::Dot => true,
            Kind::Keyword(word) => matches!(word, K::In | K::Contains),
            _ => false,
        }
    }

    fn column_condition(&mut self) -> Res<ColumnCondition> {
        let column = self.column()?;
        let part = self.column_part()?;
        let test = if self.eat_word(K::In) {
            ConditionTest::In(self.in_values()?)
        } else {
            let operator = match part {
                ColumnPart::Whole if self.is(K::Contains) => self.contains(),
                _ => self.comparison()?,
            };
            ConditionTest::Compare(operator, self.term()?)
        };
        Ok(ColumnCondition { column, part, test })
    }

    /// `[k]`, `.f` or nothing.
    fn column_part(&mut self) -> Res<ColumnPart> {
        if self.eat(Kind::OpenBracket) {
            let key = self.nested(Self::term)?;
            self.expect(Kind::CloseBracket, "']'")?;
            return Ok(ColumnPart::Element(key));
        }
        if self.eat(Kind::Dot) {
            return Ok(ColumnPart::Field(self.name()?));
        }
        Ok(ColumnPart::Whole)
    }

    pub(super) fn delete(&mut self) -> Res<Delete> {
        self.expect_word(K::Delete)?;
        let mut targets = Vec::new();
        if !self.is(K::From) {
            targets = self.comma_list(|p| {
                let column = p.column()?;
                p.looked_ahead();
                Ok(DeleteTarget { column, part: p.column_part()? })
            })?;
        }
        self.expect_word(K::From)?;
        let table = self.table_name()?;
        let mut timestamp = None;
        if self.eat_word(K::Using) {
            self.expect_word(K::Timestamp)?;
            timestamp = Some(self.int_value()?);
        }
        self.expect_word(K::Where)?;
        let filter = self.relations()?;
        let condition = self.condition()?;
        Ok(Delete { targets, table, timestamp, filter, condition })
    }

    pub(super) fn batch(&mut self) -> Res<Batch> {
        self.expect_word(K::Begin)?;
        let kind = if self.eat_word(K::Unlogged) {
            BatchKind::Unlogged
        } else if self.eat_word(K::Counter) {
            BatchKind::Counter
        } else {
            BatchKind::Logged
        };
        self.expect_word(K::Batch)?;
        let attributes = self.using()?;
        let mut statements = Vec::new();
        while !self.eat_word(K::Apply) {
            statements.push(match self.kind() {
                Kind::Keyword(K::Insert) => Modification::Insert(self.insert()?),
                Kind::Keyword(K::Update) => Modification::Update(self.update()?),
                Kind::Keyword(K::Delete) => Modification::Delete(self.delete()?),
                _ => return self.mismatch("K_APPLY"),
            });
            self.eat(Kind::Semicolon);
        }
        self.expect_word(K::Batch)?;
        Ok(Batch { kind, attributes, statements })
    }
}
